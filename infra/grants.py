"""Who may do what: least privilege, function by function, in one place to read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from infra.constructs.function import Function
from infra.constructs.nag import acknowledge
from infra.constructs.queues import RedrivenQueue
from infra.constructs.schedule_group import WakeUps
from infra.constructs.signing_secret import SigningSecret
from infra.constructs.storage import Storage
from infra.target_grants import (
    ACTIONS,
    CONDITIONS,
    by_service,
    clusters_of,
    containers_in,
    executions_of,
)

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
_NAMELESS = "Tasks of the clusters that allowed_targets lists have no names beforehand."
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
    notices: RedrivenQueue
    # The owners' topics, as a pattern.
    notice_topics: str
    notice_topics_shown_by_nag: str
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
    # Who did what, which keys were used, who has jobs at all, and who subscribed.
    records = ["dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:DeleteItem"]
    function.allow(records, [on.records])
    _allow_topics(function, on, ["sns:CreateTopic", "sns:Subscribe", "sns:Unsubscribe"])
    if on.in_emulator:
        _allow_anywhere(function, ["sns:Unsubscribe"], "a subscription is not its topic's there")
    function.allow(on.send, [on.notices.queue.queue_arn])
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
    _allow_announcing(function, on)


def _allow_announcing(function: Function, on: Resources) -> None:
    """Who wants to hear of something, and that it has happened."""
    function.allow(["dynamodb:Query"], [on.records])
    function.allow(on.send, [on.notices.queue.queue_arn])


def grant_watcher(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:Query"], [f"{on.jobs}/index/waiting", f"{on.runs}/index/watch", on.runs])
    function.allow(["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [on.jobs, on.runs])
    function.allow(["dynamodb:PartiQLUpdate"], [on.jobs])
    # Runs, and what the auditor found.
    function.allow(["dynamodb:PutItem"], [on.runs, on.records])
    function.allow(["sqs:GetQueueAttributes"], on.run_queue_arns)
    _allow_announcing(function, on)
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


def grant_notifier(function: Function, on: Resources) -> None:
    function.allow(["dynamodb:BatchGetItem"], [on.jobs])
    function.allow(["dynamodb:Query", "dynamodb:GetItem", "dynamodb:PutItem"], [on.records])
    function.allow(CONSUME_QUEUE, [on.notices.queue.queue_arn])
    function.allow(on.send, [on.notices.queue.queue_arn])
    _allow_topics(function, on, ["sns:Publish"])
    _allow_signing(function, on)
    # What a job's notify block may name.
    _allow_targets(function, on, ["lambda", "sqs", "kms"])


def grant_schedules(on: Resources) -> None:
    # EventBridge also writes to the dead-letter queue with this role.
    on.wake_ups.allow(SEND, [on.due.queue.queue_arn, on.due.dead_letters.queue_arn])


def _allow_targets(function: Function, on: Resources, services: Collection[str] = tuple(ACTIONS)) -> None:
    """What the environment allows tasks to reach, and nothing else."""
    found = by_service(on.targets)
    for service, patterns in ((service, found[service]) for service in found if service in services):
        function.allow(ACTIONS[service], patterns, CONDITIONS.get(service))
        for pattern in patterns:
            if "*" in pattern:
                _acknowledge(
                    function, pattern, "Listed in allowed_targets, for tasks to reach; see cdk.json."
                )
    containers = containers_in(clusters_of(on.targets)) if "ecs" in services else []
    if containers:
        # A container takes on the tags of its definition; AWS asks for that by name. Only as it is started.
        starting = {"StringEquals": {"ecs:CreateAction": "RunTask"}}
        function.allow(["ecs:TagResource"], containers, starting)
        _acknowledge_all(function, containers, _NAMELESS)


def _allow_looking_after(function: Function, on: Resources) -> None:
    """What tasks have started is looked at, and stopped."""
    services = by_service(on.targets)
    if clusters := clusters_of(services.get("ecs", [])):
        containers = containers_in(clusters)
        function.allow(["ecs:DescribeTasks", "ecs:StopTask"], containers)
        _acknowledge_all(function, containers, _NAMELESS)
        _allow_finding_containers(function, clusters, on)
    if "states" in services:
        executions = executions_of(services["states"])
        function.allow(["states:DescribeExecution", "states:StopExecution"], executions)
        _acknowledge_all(
            function, executions, "Executions have no names beforehand; their state machines have."
        )


def _allow_finding_containers(function: Function, clusters: Sequence[str], on: Resources) -> None:
    """Those that a worker had just started when it died: by who started them, in their cluster."""
    if on.in_emulator:
        # It asks about the cluster, whatever is done with a task.
        function.allow(["ecs:ListTasks", "ecs:DescribeTasks", "ecs:StopTask"], clusters)
        _acknowledge_all(function, clusters, "Only in the emulator, which asks about the cluster.")
        return
    function.allow(["ecs:ListTasks"], ["*"], {"ArnLike": {"ecs:cluster": list(clusters)}})
    _acknowledge(function, "*", "A list of tasks is no resource; its cluster is a condition.")


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


def _allow_topics(function: Function, on: Resources, actions: list[str]) -> None:
    function.allow(actions, [on.notice_topics])
    _acknowledge(
        function,
        on.notice_topics_shown_by_nag,
        "One topic per owner who subscribes, made when it is needed; the names are Duetime's own.",
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
