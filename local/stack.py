"""Up and down. Each finds out what is there and does the rest, so each can be repeated or interrupted."""

from collections.abc import Mapping
from dataclasses import dataclass

from local.assembly import ensure_assembly
from local.credentials import ensure_operator
from local.deployment import STACK_NAME, deploy, deployed_outputs
from local.emulator import Emulator, launch, stop, wait_until_healthy
from local.exclusion import exclusive
from local.fingerprint import fingerprint
from local.layout import Layout
from local.ports import asked_port, wanted_port
from local.progress import Progress
from local.records import read_record, write_record
from local.stack_file import StackFile, read_stack_file, write_stack_file
from local.tools import require_tools


@dataclass(frozen=True)
class Up:
    stack: StackFile
    emulator: Emulator
    started: bool
    """False if it was up before: then it is not the caller's to stop."""


def ensure_up(layout: Layout | None = None, progress: Progress | None = None) -> Up:
    """The local stack, running today's code. It starts and deploys only what is not there yet."""
    layout, progress = layout or Layout(), progress or Progress()
    require_tools(layout)
    with exclusive(layout.lock, progress):
        running = running_emulator(layout)
        if running:
            _mention_other_port(running, progress)
            return Up(_ensure_stack(layout, running, progress), running, started=False)
        return _start(layout, progress)


def take_down(layout: Layout | None = None, progress: Progress | None = None) -> bool:
    """Whether there was anything to stop."""
    layout, progress = layout or Layout(), progress or Progress()
    with exclusive(layout.lock, progress):
        return _stop(layout)


def running_emulator(layout: Layout) -> Emulator | None:
    emulator = Emulator.from_record(read_record(layout.emulator_record))
    return emulator if emulator and emulator.healthy else None


def _start(layout: Layout, progress: Progress) -> Up:
    _stop(layout)
    port = wanted_port()
    try:
        with progress.step(f"Starting the emulator on port {port}"):
            emulator = launch(
                layout.emulator_python, layout.emulator_data, layout.emulator_log, port, auth=True
            )
            write_record(layout.emulator_record, emulator.as_record())
            wait_until_healthy(emulator, layout.emulator_log)
        return Up(_ensure_stack(layout, emulator, progress), emulator, started=True)
    except BaseException:
        _stop(layout)
        raise


def _ensure_stack(layout: Layout, emulator: Emulator, progress: Progress) -> StackFile:
    sources = fingerprint(layout.root)
    known = read_stack_file(layout.stack_file)
    outputs = deployed_outputs(layout, emulator, sources)
    if outputs and known:
        return known
    if not outputs:
        ensure_assembly(layout, sources, progress)
        outputs = deploy(layout, emulator, sources, progress)
    stack = _describe(emulator, outputs, known)
    write_stack_file(layout.stack_file, stack)
    return stack


def _describe(emulator: Emulator, outputs: Mapping[str, str], known: StackFile | None) -> StackFile:
    known_key = known.access_key if known else None
    key = ensure_operator(emulator.endpoint_url, outputs["OperatorPolicyArn"], known_key)
    return StackFile(
        # The ApiUrl output is the one of AWS, a host name; the emulator also takes the id in the path,
        # which needs no name to resolve.
        api_url=f"{emulator.endpoint_url}/_aws/execute-api/{outputs['ApiId']}",
        region=outputs["Region"],
        access_key_id=key.access_key_id,
        secret_access_key=key.secret_access_key,
        endpoint_url=emulator.endpoint_url,
        stack_name=STACK_NAME,
    )


def _stop(layout: Layout) -> bool:
    """Also clears up after an emulator that died: its data, and a stack file that leads nowhere."""
    emulator = Emulator.from_record(read_record(layout.emulator_record))
    was_alive = emulator is not None and emulator.alive
    if emulator:
        stop(emulator, layout.emulator_data)
    for leftover in (layout.stack_file, layout.deployment_record, layout.emulator_record):
        leftover.unlink(missing_ok=True)
    return was_alive


def _mention_other_port(emulator: Emulator, progress: Progress) -> None:
    asked = asked_port()
    if asked and asked != emulator.port:
        progress.say(
            f"It is already up on port {emulator.port}; `make down` first to move it to port {asked}."
        )
