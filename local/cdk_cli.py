"""The real CDK CLI, on the Node of our own environment and away from the person's AWS account."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from local.errors import LocalStackError
from local.layout import Layout
from local.logs import last_words_of
from local.ports import LOOPBACK


def run_cdk(
    layout: Layout, arguments: Sequence[str], log: Path, *, variables: Mapping[str, str], failure: str
) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(layout.node), str(layout.cdk), *arguments, "--no-notices", "--no-color"]
    if _exit_code(command, log, layout.root, _environment(layout, variables)) != 0:
        raise LocalStackError(f"{failure}: {last_words_of(log)} (log: {layout.shown(log)}).")


def _exit_code(command: Sequence[str], log: Path, directory: Path, environment: Mapping[str, str]) -> int:
    """In a session of its own: the CLI starts programs that start programs, and an interruption ends them all."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return child.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise


def _environment(layout: Layout, variables: Mapping[str, str]) -> dict[str, str]:
    foreign = ("AWS_", "CDK_", "PYTHONPATH", "PYTHONHOME")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **inherited,
        # jsii and cdk.json's `python` are found on the path: ours come first.
        "PATH": f"{layout.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CI": "1",
        **variables,
    }
