"""MiniStack as a process: started in the background, asked for its health, stopped."""

import json
import os
import secrets
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from local import process
from local.errors import LocalStackError
from local.logs import last_words_of
from local.ports import LOOPBACK, require_free

BOOT_SECONDS = 30.0
POLL_SECONDS = 0.05
# The emulator hands its own environment on to the functions, so it gets what a function may rely on and no
# more: above all no AWS_* of the person's own account, no PYTHONPATH and no proxy between it and itself.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# Popen's destructor complains of a process that it did not see end, and this one is meant to outlive us.
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Emulator:
    pid: int
    port: int
    token: str

    @property
    def endpoint_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def alive(self) -> bool:
        return process.runs(self.pid, self.token)

    @property
    def healthy(self) -> bool:
        """Alive, and the one that answers on the port: the token comes back as MiniStack's `edition`."""
        return self.alive and _health(self.endpoint_url).get("edition") == self.token

    def as_record(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_record(record: Mapping[str, Any] | None) -> "Emulator | None":
        match record:
            case {"pid": int(pid), "port": int(port), "token": str(token)}:
                return Emulator(pid, port, token)
        return None


def launch(python: Path, data: Path, log: Path, port: int, *, auth: bool) -> Emulator:
    """Start it in a session of its own, so that a Ctrl-C meant for our command does not reach it."""
    require_free(port)
    token = f"duetime-{secrets.token_hex(8)}"
    _empty(data)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(python), "-X", f"duetime={token}", "-m", "ministack"],
            cwd=data,
            env=environment_of(data, port, token, auth=auth),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started.append(child)
    _await_command_line(child, token)
    return Emulator(child.pid, port, token)


def _await_command_line(child: subprocess.Popen[bytes], token: str) -> None:
    """Popen returns in the middle of exec, when for some microseconds Linux shows no command line at all."""
    while child.poll() is None and not process.runs(child.pid, token):
        time.sleep(0.001)


def wait_until_healthy(emulator: Emulator, log: Path) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    while not emulator.healthy:
        if not emulator.alive:
            raise LocalStackError(f"The emulator ended while starting: {last_words_of(log)} (log: {log}).")
        if time.monotonic() > deadline:
            raise LocalStackError(f"The emulator did not answer within {BOOT_SECONDS:.0f} s (log: {log}).")
        time.sleep(POLL_SECONDS)


def stop(emulator: Emulator, data: Path) -> None:
    process.end(emulator.pid, emulator.token)
    shutil.rmtree(data, ignore_errors=True)


def reset(endpoint_url: str) -> None:
    """Forget every table, queue and user: a clean slate between tests in a seventh of a second."""
    request = urllib.request.Request(f"{endpoint_url}/_ministack/reset", method="POST")  # noqa: S310
    with _direct.open(request, timeout=30):
        return


def environment_of(data: Path, port: int, token: str, *, auth: bool) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return inherited | {
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "AUTH": str(auth).lower(),
        # Both would open further ports, on every interface.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "MINISTACK_EDITION": token,
        "STATE_DIR": str(data / "state"),
        "S3_DATA_DIR": str(data / "s3"),
        "TMPDIR": str(data / "tmp"),
    }


def _empty(data: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    for folder in ("state", "s3", "tmp"):
        (data / folder).mkdir(parents=True, exist_ok=True)


def _health(endpoint_url: str) -> dict[str, Any]:
    try:
        with _direct.open(f"{endpoint_url}/_ministack/health", timeout=10) as answer:
            health = json.load(answer)
    except (OSError, ValueError):
        return {}
    return health if isinstance(health, dict) else {}
