"""A process that outlives the command that started it, recognised by a token on its command line.

A pid alone proves nothing: the process may be gone and its number given to another program, and that must
not be stopped. On the command line the kernel vouches for the token, even if the process no longer answers.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

GRACE_SECONDS = 5.0
POLL_SECONDS = 0.02


def command_line(pid: int) -> str:
    """What that process was started as; empty for one that is gone, or dead and not yet collected."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    listing = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listing.stdout


def runs(pid: int, token: str, read: Callable[[int], str] = command_line) -> bool:
    return pid > 1 and bool(token) and token in read(pid)


def end(pid: int, token: str) -> None:
    """Stop that process and everything in its group, which it leads: the workers it started."""
    if not runs(pid, token):
        return
    _signal(os.kill, pid, signal.SIGTERM)
    if not _gone_within(GRACE_SECONDS, pid, token):
        _signal(os.kill, pid, signal.SIGKILL)
        _gone_within(GRACE_SECONDS, pid, token)
    # The group's number cannot have been given away: its leader was seen alive a moment ago.
    _signal(os.killpg, pid, signal.SIGKILL)


def _signal(send: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return


def _gone_within(seconds: float, pid: int, token: str) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _collect(pid)
        if not runs(pid, token):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _collect(pid: int) -> None:
    """Only the parent can, and the parent may be this process or one that ended long ago."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
