"""Who may do what: least privilege, function by function, in one place to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from infra.constructs.function import Function
from infra.constructs.nag import acknowledge
from infra.constructs.queues import RedrivenQueue
from infra.constructs.schedule_group import WakeUps
from infra.constructs.signing_secret import SigningSecret
from infra.constructs.storage import Storage
from infra.target_grants import ACTIONS, by_service

READ_STREAM = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    # It cannot be limited to a stream (only to "*"), and a mapping that is given the stream's ARN does not call it.
    # It is here because Lambda's check of the role asks for it by name.
    "dynamodb:ListStreams",
]
SEND = ["sqs:SendMessage"]
# AWS has no such action: there, SendMessage covers batches. The emulator asks for it by name.
SEND_IN_EMULATOR = [*SEND, "sqs:SendMessageBatch"]
# Nor this one: there, each statement of a batch asks for PartiQLUpdate on its table.
BATCH_IN_EMULATOR = ["dynamodb:BatchExecuteStatement"]
CONSUME_QUEUE = [
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
]
EVERY_EMULATED_SCHEDULE = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/*"


@dataclass(frozen=True)
class Resources:
    storage: Storage
    bucket: s3.Bucket
    run_queues: Mapping[str, RedrivenQueue]
    due: RedrivenQueue
    stream_failures: sqs.Queue
    feed_failures: sqs.Queue
    wake_ups: WakeUps
    signing_secret: SigningSecret
    # The ARNs that tasks may reach, as patterns.
    targets: Sequence[str]
    in_emulator: bool

    @property
    def jobs(self) -> str:
        return self.storage.jobs.table_arn

    @property
    def runs(self) -> str:
        return self.storage.runs.table_arn

    @property
    def records(self) -> str:
        return self.storage.records.table_arn

    @property
    def run_queue_arns(self) -> list[str]:
        return [each.queue.queue_arn for each in self.run_queues.values()]

    @property
    def dead_letter_arns(self) -> list[str]:
        return [each.dead_letters.queue_arn for each in self.run_queues.values()]

    @property
    def send(self) -> list[str]:
        return SEND_IN_EMULATOR if self.in_emulator else SEND


def grant_job_service(function: Function, on: Resources) -> None:
    tables = ["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:BatchGetItem"]
    function.allow(tables, [on.jobs, on.runs])
    # The open runs of a job that is cancelled, and the next that waits for its turn.
    function.allow(["dynamodb:Query"], [on.runs, f"{on.runs}/index/watch", f"{on.jobs}/index/by_owner"])
    # Who did what, which keys were used, and who has jobs at all.
    function.allow(["dynamodb:PutItem", "dynamodb:Query"], [on.records])
    _allow_objects(function, on, ["s3:PutObject", "s3:GetObject"])
    _allow_signing(function, on)
    _allow_wakeups(function, on)


def grant_job_search(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], [on.jobs, on.runs])
    function.allow(
        ["dynamodb:Query"],
        [
            on.runs,
            f"{on.runs}/index/watch",
            on.records,
            f"{on.jobs}/index/by_owner",
            # How far behind the sweep is.
            f"{on.jobs}/index/waiting",
        ],
    )
    # A presigned URL is worth as much as the rights of whoever signed it.
    _allow_objects(function, on, ["s3:GetObject"])
    _allow_signing(function, on)


def grant_enqueuer(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:UpdateItem"], [on.runs])
    function.allow(READ_STREAM, [on.storage.runs_stream_arn])
    function.allow(on.send, [*on.run_queue_arns, *on.dead_letter_arns, on.due.queue.queue_arn])
    # Lambda itself reports the records it gave up on, but in the function's name.
    function.allow(SEND, [on.stream_failures.queue_arn])


def grant_status_feed(function: Function, on: Resources) -> None:
    function.allow(READ_STREAM, [on.storage.runs_stream_arn])
    function.allow(SEND, [on.feed_failures.queue_arn])


def grant_watcher(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:Query"], [f"{on.jobs}/index/waiting", f"{on.runs}/index/watch", on.runs])
    function.allow(["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [on.jobs, on.runs])
    function.allow(["dynamodb:PartiQLUpdate"], [on.jobs])
    # Runs, and what the auditor found.
    function.allow(["dynamodb:PutItem"], [on.runs, on.records])
    function.allow(["sqs:GetQueueAttributes"], on.run_queue_arns)
    function.allow(CONSUME_QUEUE, [on.due.queue.queue_arn])
    function.allow(on.send, [*on.run_queue_arns, *on.dead_letter_arns, on.due.queue.queue_arn])
    function.allow(["sqs:ReceiveMessage", "sqs:DeleteMessage"], on.dead_letter_arns)
    _allow_objects(function, on, ["s3:PutObject"])
    _allow_wakeups(function, on)
    _allow_looking_after(function, on)
    if on.in_emulator:
        _allow_anywhere(function, BATCH_IN_EMULATOR, "it asks for an action that AWS does not have")


def grant_worker(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [on.jobs, on.runs])
    # To find the next run that waits for its turn.
    function.allow(["dynamodb:Query"], [on.runs])
    function.allow(["dynamodb:PutItem"], [on.records])
    function.allow(CONSUME_QUEUE, on.run_queue_arns)
    _allow_objects(function, on, ["s3:PutObject"])
    _allow_targets(function, on)


def grant_schedules(on: Resources) -> None:
    # EventBridge also writes to the dead-letter queue with this role.
    on.wake_ups.allow(SEND, [on.due.queue.queue_arn, on.due.dead_letters.queue_arn])


def _allow_targets(function: Function, on: Resources) -> None:
    """What the environment allows tasks to reach, and nothing else."""
    for service, patterns in by_service(on.targets).items():
        passing = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
        function.allow(ACTIONS[service], patterns, passing if service == "iam" else None)
        for pattern in patterns:
            if "*" in pattern:
                _acknowledge(
                    function, pattern, "Listed in allowed_targets, for tasks to reach; see cdk.json."
                )


def _allow_looking_after(function: Function, on: Resources) -> None:
    """What tasks have started is looked at, and stopped."""
    services = by_service(on.targets)
    if "ecs" in services:
        # A task has no name beforehand; its cluster has.
        clusters = [arn for arn in services["ecs"] if ":cluster/" in arn]
        tasks = [f"{cluster.replace(':cluster/', ':task/')}/*" for cluster in clusters]
        # The emulator asks about the cluster instead of the task.
        function.allow(["ecs:DescribeTasks", "ecs:StopTask"], [*tasks, *(clusters if on.in_emulator else [])])
        if on.in_emulator:
            _acknowledge_all(function, clusters, "Only in the emulator, which asks about the cluster.")
        _acknowledge_all(
            function, tasks, "Tasks of the clusters that allowed_targets lists have no names beforehand."
        )
    if "states" in services:
        executions = [f"{arn.replace(':stateMachine:', ':execution:')}:*" for arn in services["states"]]
        function.allow(["states:DescribeExecution", "states:StopExecution"], executions)
        _acknowledge_all(
            function, executions, "Executions have no names beforehand; their state machines have."
        )


def _allow_wakeups(function: Function, on: Resources) -> None:
    function.allow(["scheduler:CreateSchedule"], [on.wake_ups.any_schedule_arn])
    # A schedule acts with a role, and whoever creates it must be allowed to lend it that role, and only so.
    function.allow(
        ["iam:PassRole"],
        [on.wake_ups.role.role_arn],
        {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
    )
    reason = "One schedule per occupied minute: their names are times that nobody can list. The group is Duetime's own."
    _acknowledge(function, on.wake_ups.any_schedule_shown_by_nag, reason)
    if on.in_emulator:
        function.allow(["scheduler:CreateSchedule"], [EVERY_EMULATED_SCHEDULE])
        _acknowledge(
            function,
            EVERY_EMULATED_SCHEDULE,
            "Only in the emulator: to its IAM every schedule is in the default group.",
        )


def _allow_objects(function: Function, on: Resources, actions: list[str]) -> None:
    function.allow(actions, [f"{on.bucket.bucket_arn}/*"])
    shown = f"<{function.logical_id_of(on.bucket)}.Arn>/*"
    _acknowledge(
        function, shown, "Logs and results are named by their run, which nobody can list beforehand."
    )


def _allow_signing(function: Function, on: Resources) -> None:
    function.allow(["secretsmanager:GetSecretValue"], [on.signing_secret.arn])


def _allow_anywhere(function: Function, actions: list[str], why: str) -> None:
    function.allow(actions, ["*"])
    _acknowledge(function, "*", f"Only in the emulator: {why}, and names no resource with it.")


def _acknowledge_all(function: Function, resources: Sequence[str], reason: str) -> None:
    for resource in resources:
        _acknowledge(function, resource, reason)


def _acknowledge(function: Function, resource: str, reason: str) -> None:
    acknowledge(function.role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)
