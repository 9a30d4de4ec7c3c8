"""A target on loopback that notes when it was called for which run."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Call:
    run_id: str
    due_at: float
    called_at: float

    @property
    def late_ms(self) -> float:
        return (self.called_at - self.due_at) * 1000


@contextmanager
def noting() -> Iterator[tuple[str, list[Call]]]:
    """Its URL, and the calls as they come."""
    calls: list[Call] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            called_at = time.time()
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            due_at = datetime.fromisoformat(self.headers["Duetime-Due-At"]).timestamp()
            calls.append(Call(self.headers["Idempotency-Key"], due_at, called_at))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Six hundred lines would help nobody."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", calls
        server.shutdown()
