"""How punctual the local stack is: `python -m bench.punctuality` (about eight minutes).

FUTURE jobs, ten a second for a minute, due at random milliseconds 20 seconds to 6 minutes ahead: some are queued at
once, some wait for a sweep. Each calls a target on loopback. Beside them, if asked (--crons MINUTES), a cron every ten
seconds and one every minute. It prints how late the starts were, as the worker recorded them and as the target saw
the calls, and fails if a job was lost, ran twice or started early.
"""

import argparse
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from duetime_client import Client

from bench.lateness import Lateness
from bench.target import Call, noting
from local.layout import Layout
from local.stack import ensure_up, take_down

SUBMITTERS = 4
GRACE_SECONDS = 30


def main() -> int:
    options = _options()
    up = ensure_up()
    try:
        with noting() as (url, calls):
            return _measure(Client.from_stack_file(Layout().stack_file), url, calls, options)
    finally:
        if up.started:
            take_down()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=int, default=10, help="jobs a second (10)")
    parser.add_argument("--seconds", type=int, default=60, help="for so long (60)")
    parser.add_argument(
        "--soonest", type=float, default=20, help="due so many seconds ahead at the least (20)"
    )
    parser.add_argument("--latest", type=float, default=360, help="and at the most (360)")
    parser.add_argument("--crons", type=float, default=0, help="watch the two crons for so many minutes (0)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _measure(client: Client, url: str, calls: list[Call], options: argparse.Namespace) -> int:
    crons = _start_crons(client, url) if options.crons else {}
    watch_until = time.monotonic() + options.crons * 60
    jobs = _submit(client, url, options)
    last_due = max(jobs.values(), default=datetime.now(UTC))
    print(f"{len(jobs)} jobs submitted; the last is due at {last_due:%H:%M:%S} UTC", flush=True)
    _sleep_until(last_due + timedelta(seconds=GRACE_SECONDS))
    time.sleep(max(0.0, watch_until - time.monotonic()))
    for job_id in crons.values():
        client.cancel_job(job_id)
    problems = _report_jobs(client, jobs, [call for call in calls if _is_of(call, jobs)])
    for name, job_id in crons.items():
        problems += _report_cron(name, [call for call in calls if _is_of(call, [job_id])])
    print("every job ran exactly once, none early" if not problems else "\n".join(problems))
    return 1 if problems else 0


def _submit(client: Client, url: str, options: argparse.Namespace) -> dict[str, datetime]:
    chance = random.Random(options.seed)
    began = time.monotonic()
    jobs: dict[str, datetime] = {}

    def submit(number: int, ahead: float) -> None:
        time.sleep(max(0.0, began + number / options.rate - time.monotonic()))
        due_at = datetime.now(UTC) + timedelta(milliseconds=int(ahead * 1000))
        job = {
            "name": f"punctuality {number}",
            "schedule_type": "FUTURE",
            "schedule_time": due_at.isoformat(timespec="milliseconds"),
            "task": {"type": "http", "url": url},
            "payload": {"number": number},
        }
        jobs[client.create_job(job)["job_id"]] = due_at

    with ThreadPoolExecutor(SUBMITTERS) as threads:
        count = options.rate * options.seconds
        aheads = [chance.uniform(options.soonest, options.latest) for _ in range(count)]
        list(threads.map(submit, range(count), aheads))
    return jobs


def _start_crons(client: Client, url: str) -> dict[str, str]:
    expressions = {"every ten seconds": "*/10 * * * * *", "every minute": "* * * * *"}
    return {
        name: client.create_job(
            {
                "name": name,
                "schedule_type": "CRON",
                "cron_expression": expression,
                "task": {"type": "http", "url": url},
            }
        )["job_id"]
        for name, expression in expressions.items()
    }


def _report_jobs(client: Client, jobs: dict[str, datetime], calls: list[Call]) -> list[str]:
    with ThreadPoolExecutor(SUBMITTERS) as threads:
        runs = list(threads.map(lambda job_id: client.get_status(job_id)["latest_run"], jobs))
    succeeded = [run for run in runs if run and run["status"] == "SUCCEEDED"]
    if succeeded:
        print(f"start - due, recorded by the worker: {Lateness([_late_ms(run) for run in succeeded])}")
    if calls:
        print(f"call - due, seen by the target:      {Lateness([call.late_ms for call in calls])}")
    problems = []
    if len(succeeded) != len(jobs):
        problems.append(f"{len(jobs) - len(succeeded)} of {len(jobs)} jobs did not succeed")
    if len({call.run_id for call in calls}) != len(calls):
        problems.append("some runs called their target more than once")
    if early := [call for call in calls if call.late_ms < 0]:
        problems.append(f"{len(early)} calls came early")
    return problems


def _report_cron(name: str, calls: list[Call]) -> list[str]:
    due = sorted({call.due_at for call in calls})
    gaps = {round(later - earlier, 3) for earlier, later in pairwise(due)}
    late = Lateness([call.late_ms for call in calls])
    print(f"cron {name}: {len(calls)} runs, {sorted(gaps)} s apart; call - due: {late}")
    problems = []
    if len(gaps) > 1:
        problems.append(f"cron {name} missed a time: gaps of {sorted(gaps)} s")
    if len(due) != len(calls):
        problems.append(f"cron {name} ran a time twice")
    return problems


def _late_ms(run: dict[str, Any]) -> float:
    started, due = (datetime.fromisoformat(run[name]) for name in ("start_time", "due_at"))
    return (started - due).total_seconds() * 1000


def _is_of(call: Call, jobs: Any) -> bool:
    return any(call.run_id.endswith(job_id.replace("-", "")[:16]) for job_id in jobs)


def _sleep_until(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))


if __name__ == "__main__":
    sys.exit(main())
