"""Submit the demo's jobs through the Python client and watch them to their end."""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from rich.console import Console

from local.demo.jobs import demo_jobs
from local.demo.listener import listening
from local.demo.row import Row, submitted, updated
from local.demo.table import Board, PlainBoard, board, render
from local.errors import LocalStackError

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.1


class JobClient(Protocol):
    def create_job(self, job: dict[str, Any]) -> dict[str, Any]: ...
    def get_status(self, job_id: str) -> dict[str, Any]: ...


def show_demo(client: JobClient, console: Console) -> list[Row]:
    with listening() as url:
        with board(console) as shown:
            rows = _watch(client, _submit(client, demo_jobs(url), shown), shown)
        if isinstance(shown, PlainBoard):
            console.print(render(rows))
    _require_success(rows)
    return rows


def _submit(client: JobClient, jobs: Sequence[dict[str, Any]], shown: Board) -> list[Row]:
    rows: list[Row] = []
    for job in jobs:
        rows.append(submitted(job, client.create_job(job)["job_id"]))
        shown.show(rows)
    return rows


def _watch(client: JobClient, rows: list[Row], shown: Board) -> list[Row]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        rows = [row if row.finished else updated(row, client.get_status(row.job_id)) for row in rows]
        shown.show(rows)
        if all(row.finished for row in rows) or time.monotonic() > deadline:
            return rows
        time.sleep(POLL_SECONDS)


def _require_success(rows: Sequence[Row]) -> None:
    failed = [row for row in rows if not row.succeeded]
    if failed:
        told = "; ".join(
            f"{row.name} is {row.status}" + (f" ({row.error})" if row.error else "") for row in failed
        )
        raise LocalStackError(f"{len(failed)} of the demo's {len(rows)} jobs did not succeed: {told}.")
