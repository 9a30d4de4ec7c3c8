"""`run`: the stack, a demo of it, and then the stack for as long as the person likes."""

import signal
import time

from local.errors import LocalStackError
from local.layout import Layout
from local.logs import last_words_of
from local.progress import Progress
from local.stack import Up, ensure_up, running_emulator, take_down
from local.usage import usage

LOOK_SECONDS = 1.0


def serve(progress: Progress) -> int:
    layout = Layout()
    up = ensure_up(layout, progress)
    try:
        _demonstrate(up, layout, progress)
        _wait(up, layout, progress)
    except KeyboardInterrupt:
        progress.say("")
    finally:
        _leave(up, layout, progress)
    return 0


def _demonstrate(up: Up, layout: Layout, progress: Progress) -> None:
    # Imported here, because `up` and `down` need neither and should not wait for them.
    from duetime_client import Client
    from rich.console import Console

    from local.demo.show import show_demo

    rows = show_demo(Client.from_stack_file(layout.stack_file), Console(file=progress.stream))
    progress.say(usage(up.stack, rows[0].job_id))


def _wait(up: Up, layout: Layout, progress: Progress) -> None:
    while up.emulator.alive:
        time.sleep(LOOK_SECONDS)
    if layout.emulator_record.exists():
        raise LocalStackError(
            f"The emulator ended by itself: {last_words_of(layout.emulator_log)} "
            f"(log: {layout.shown(layout.emulator_log)})."
        )
    progress.say("The local stack was stopped from elsewhere.")


def _leave(up: Up, layout: Layout, progress: Progress) -> None:
    # A second, impatient Ctrl-C must not leave half of it running.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if up.started:
        take_down(layout, progress)
        progress.say("Stopped the local stack.")
    elif running_emulator(layout):
        progress.say("The local stack was up before and stays up; `make down` stops it.")
