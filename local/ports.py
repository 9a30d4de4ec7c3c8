"""Which port of the loopback interface the emulator listens on."""

import os
import socket
from collections.abc import Mapping

from local.errors import LocalStackError

LOOPBACK = "127.0.0.1"
PORT_VARIABLE = "DUETIME_LOCAL_PORT"
# Not 4566, where people who use LocalStack or MiniStack for other projects have those running.
DEFAULT_PORT = 4610


def wanted_port(environment: Mapping[str, str] = os.environ) -> int:
    """The port to start on: the one asked for, or ours."""
    return asked_port(environment) or DEFAULT_PORT


def asked_port(environment: Mapping[str, str] = os.environ) -> int | None:
    text = environment.get(PORT_VARIABLE, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise LocalStackError(f"{PORT_VARIABLE} is {text!r}, but must be a port number from 1 to 65535.")
    return int(text)


def require_free(port: int) -> None:
    with socket.socket() as probe:
        # As the server itself does, or the last emulator's connections in TIME_WAIT would count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except PermissionError:
            raise LocalStackError(
                f"Port {port} is reserved for the system: choose one above 1023 with {PORT_VARIABLE}."
            ) from None
        except OSError:
            raise LocalStackError(
                f"Port {port} is in use by another program: stop that, or choose another port, for example "
                f"{PORT_VARIABLE}={port + 1 if port < 65535 else DEFAULT_PORT} make up."
            ) from None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
