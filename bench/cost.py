"""What one FUTURE job costs, from create to SUCCEEDED: `python -m bench.cost` (half a minute).

Requests to AWS and DynamoDB write units, counted while the real domain code takes jobs of less than 1 KB, all due in
one minute, through create, sweep, hint, claim and finish, against MiniStack's DynamoDB, SQS and Scheduler. The clock is
moved by hand, so nothing waits. Not counted: API Gateway, and Lambda's own polling of the stream. What Lambda receives
and deletes is counted: a request each for ten hints, and for every message of the due queue.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from duetime.admission import Admission, Quota
from duetime.audit import Actor
from duetime.batches import in_batches
from duetime.blobs import MemoryBlobs
from duetime.clock import ManualClock
from duetime.due_messages import DueMessage, SweepShard, parse_due_message
from duetime.dynamo_lists import DynamoLists
from duetime.dynamo_store import DynamoStore
from duetime.enqueuing import Announcer, Change
from duetime.eventbridge_wakeups import EventBridgeWakeUps
from duetime.hints import ReceivedHint
from duetime.job import JobSpec, Priority
from duetime.letters import LetterKeeper
from duetime.patrolling import Patroller
from duetime.patrols import Patrols
from duetime.rescuing import Rescuer
from duetime.run import RunKey
from duetime.shelf import Shelf
from duetime.sqs_dead_letters import SqsDeadLetters
from duetime.sqs_due_queue import SqsDueQueue
from duetime.sqs_run_queues import SqsRunQueues
from duetime.submission import Intake
from duetime.sweeping import Sweeper
from duetime.targets import AllowedTargets
from duetime.timing import ScheduleType, Timing
from duetime.wakeups import RememberedWakeUps
from duetime.watching import Watcher
from duetime.work_reports import WorkReports

from bench.meter import Meter
from bench.write_units import Index, Table, size_of
from infra.projections import LISTED, WATCHED
from local.bare import bare_emulator
from tests.tables import JOBS, RECORDS, RUNS, create_tables
from tests.workers import a_worker

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
OWNER = "arn:aws:iam::123456789012:role/payments"
HINTS_AT_ONCE = 10
RECORDS_AT_ONCE = 100
TABLES = {
    JOBS: Table(
        ("job_id",),
        (Index(("shard", "next_run_at")), Index(("listing", "created_at"), tuple(LISTED))),
    ),
    RUNS: Table(("job_id", "run_id"), (Index(("watch_key", "watch_at"), tuple(WATCHED)),)),
    RECORDS: Table(("subject", "entry"), ()),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000, help="how many jobs are due in that minute (1000)")
    count = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder, bare_emulator(Path(folder)) as endpoint_url:
        stage = Stage.set_up(endpoint_url)
        stage.submit(count)
        stage.tick()
        stage.announce(count)
        stage.work_off(count)
        stage.report(count)
        return 0 if stage.all_succeeded(count) else 1


@dataclass
class Stage:
    clock: ManualClock
    meter: Meter
    store: DynamoStore
    intake: Intake
    watcher: Watcher
    announcer: Announcer
    onlooker: Any
    due_queue: "Received"

    @classmethod
    def set_up(cls, endpoint_url: str) -> "Stage":
        def client(service: str) -> Any:
            return boto3.client(
                service,
                endpoint_url=endpoint_url,
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )

        onlooker = client("dynamodb")
        create_tables(onlooker)
        meter = Meter(TABLES, onlooker)
        dynamodb, sqs, scheduler = (meter.watch(client(name)) for name in ("dynamodb", "sqs", "scheduler"))
        urls = {
            name: client("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("due", "run", "dead")
        }
        client("scheduler").create_schedule_group(Name="wake-ups")
        arn = "arn:aws:sqs:us-east-1:000000000000:due"
        create = EventBridgeWakeUps(
            scheduler, group="wake-ups", role_arn=arn, queue_arn=arn, dead_letter_queue_arn=arn
        ).create
        clock, threads = ManualClock(NOON), ThreadPoolExecutor(1)
        store = DynamoStore(dynamodb, jobs_table=JOBS, runs_table=RUNS)
        wakeups, due_queue = RememberedWakeUps(create), SqsDueQueue(sqs, urls["due"])
        queues = SqsRunQueues(
            sqs,
            run_queue_urls=dict.fromkeys(Priority, urls["run"]),
            dead_letter_queue_urls=dict.fromkeys(Priority, urls["dead"]),
            lead=timedelta(milliseconds=400),
        )
        rescuer = Rescuer(store, Shelf(MemoryBlobs()), clock)
        watcher = Watcher(
            Sweeper(store, wakeups, due_queue, clock, threads),
            Patroller(store, queues, rescuer, clock, threads),
            Patrols(due_queue),
            WorkReports(store, rescuer),
            LetterKeeper(store, SqsDeadLetters(sqs, [urls["dead"]]), clock),
            wakeups,
            clock,
        )
        lists = DynamoLists(dynamodb, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
        admission = Admission(lists, [Quota(("*",), 1_000_000)], clock)
        intake = Intake(store, wakeups, clock, AllowedTargets(), admission, lambda: b"k")
        announcer = Announcer(store, queues, Patrols(due_queue), clock)
        received = Received(client("sqs"), urls["due"])
        return cls(clock, meter, store, intake, watcher, announcer, onlooker, received)

    def submit(self, count: int) -> None:
        for number in range(count):
            due_at = NOON + timedelta(hours=1, milliseconds=number * 59_000 // count)
            self.intake.submit(_spec(due_at), by=Actor(OWNER), request={}, idempotency_key=None)
            self.clock.advance(timedelta(milliseconds=1))

    def tick(self) -> None:
        self.clock.wait_until(NOON + timedelta(minutes=58))
        self.watcher.tick()
        # Shards with more than a page have messages of their own.
        while messages := self.due_queue.receive():
            for message in messages:
                if isinstance(message, SweepShard):
                    self.watcher.sweep_shard(message, lambda: True)
                self.meter.requests["ReceiveMessage"] += 1
                self.meter.requests["DeleteMessageBatch"] += 1

    def announce(self, count: int) -> None:
        runs = [pair.run for pair in self.store_onlooking().load(self._keys()).values()]
        assert len(runs) == count
        for batch in in_batches(runs, RECORDS_AT_ONCE):
            self.announcer.announce([Change(run, None) for run in batch])

    def work_off(self, count: int) -> None:
        worker = a_worker(self.store, self.clock, lambda _: {"status_code": 200, "body": "ok"})
        for keys in in_batches(sorted(self._keys(), key=lambda key: key.run_id), HINTS_AT_ONCE):
            found = worker.load([ReceivedHint(key, NOON) for key in keys])
            for key in keys:
                worker.work(found[key])
        self.meter.requests["ReceiveMessage"] += -(-count // HINTS_AT_ONCE)
        self.meter.requests["DeleteMessageBatch"] += -(-count // HINTS_AT_ONCE)

    def report(self, count: int) -> None:
        item = self.onlooker.scan(TableName=JOBS, Limit=1)["Items"][0]
        print(f"{count} FUTURE jobs of {size_of(item)} bytes, due in one minute, from create to SUCCEEDED")
        for name, number in sorted(self.meter.requests.items(), key=lambda pair: -pair[1]):
            units = self.meter.units[name]
            print(f"  {name:22} {number / count:6.3f} requests {units / count:7.3f} write units a job")
        requests, units = self.meter.requests.total(), self.meter.units.total()
        print(f"  {'in all':22} {requests / count:6.3f} requests {units / count:7.3f} write units a job")
        print(f"  {self.meter.requests['CreateSchedule']} EventBridge schedules were asked for")

    def all_succeeded(self, count: int) -> bool:
        pages = self.onlooker.get_paginator("scan").paginate(TableName=JOBS)
        jobs = [item for page in pages for item in page["Items"]]
        return [item["status"]["S"] for item in jobs] == ["COMPLETED"] * count

    def store_onlooking(self) -> DynamoStore:
        return DynamoStore(self.onlooker, jobs_table=JOBS, runs_table=RUNS)

    def _keys(self) -> Sequence[RunKey]:
        pages = self.onlooker.get_paginator("scan").paginate(TableName=RUNS)
        return [RunKey(item["job_id"]["S"], item["run_id"]["S"]) for page in pages for item in page["Items"]]


@dataclass
class Received:
    """Lambda's part of the due queue. Messages that are delayed (patrols) do not come."""

    client: Any
    url: str

    def receive(self) -> list[DueMessage]:
        answer = self.client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)
        messages = answer.get("Messages", [])
        for message in messages:
            self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return [parse_due_message(message["Body"]) for message in messages]


def _spec(due_at: datetime) -> JobSpec:
    return JobSpec(
        name="Daily payout",
        timing=Timing(schedule_type=ScheduleType.FUTURE, schedule_time=due_at),
        task={"type": "http", "url": "https://pay.example.com/run", "headers": {"X-Team": "pay"}},
        payload={"batch": "eu", "filler": "x" * 150},
        tags=("payments",),
    )


if __name__ == "__main__":
    sys.exit(main())
