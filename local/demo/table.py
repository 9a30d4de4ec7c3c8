"""The demo's table: live on a terminal, plain lines anywhere else."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table

from local.demo.row import Row


class Board(Protocol):
    def show(self, rows: Sequence[Row]) -> None: ...


class LiveBoard:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, rows: Sequence[Row]) -> None:
        self._live.update(render(rows), refresh=True)


class PlainBoard:
    """A line as each job finishes; no control codes for a log or a pipe to choke on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: set[str] = set()

    def show(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.finished and row.job_id not in self._told:
                self._told.add(row.job_id)
                self._console.print(f"{row.status}  {row.name}", highlight=False)


@contextmanager
def board(console: Console) -> Iterator[Board]:
    if console.is_terminal and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield LiveBoard(live)
    else:
        yield PlainBoard(console)


def render(rows: Sequence[Row]) -> Table:
    table = Table("Job", "Task", "Priority")
    table.add_column("Status", no_wrap=True)
    for heading in ("Attempt", "due→start", "start→end"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            row.task,
            row.priority,
            _coloured(row),
            str(row.attempt or "-"),
            _milliseconds(row.late_ms),
            _milliseconds(row.took_ms),
        )
    return table


def _coloured(row: Row) -> str:
    colour = "green" if row.succeeded else "red" if row.finished else "yellow"
    return f"[{colour}]{row.status}[/{colour}]"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"
