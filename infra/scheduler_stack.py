"""The whole of Duetime in one stack: what there is, what wakes what, and who may do what."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from aws_cdk import Aws, CfnOutput, Duration, IStackSynthesizer, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.access_policy import AccessPolicy
from infra.constructs.event_sources import DueQueueSource, RunQueueSource, RunStreamSource
from infra.constructs.function import Function, Workplace
from infra.constructs.http_api import SignedHttpApi
from infra.constructs.layers import Layers
from infra.constructs.nag import acknowledge
from infra.constructs.queues import RedrivenQueue, RunQueues, StreamFailures
from infra.constructs.schedule_group import WakeUps
from infra.constructs.spill_bucket import SpillBucket
from infra.constructs.storage import Storage
from infra.environments import Environment, Settings

WRITE_ROUTES = [
    "POST /jobs",
    "PUT /jobs/{job_id}",
    "DELETE /jobs/{job_id}",
    "POST /jobs/{job_id}/pause",
    "POST /jobs/{job_id}/resume",
    "POST /jobs/{job_id}/runNow",
]
READ_ROUTES = [
    "GET /jobs/{job_id}",
    "GET /jobs/{job_id}/status",
    "GET /jobs/{job_id}/runs",
    "GET /jobs/{job_id}/runs/{run_id}",
    "GET /jobs/{job_id}/upcoming",
    "POST /schedules/preview",
]
# In a policy `*` spans slashes too, so these cover all of the routes.
WRITE_ACCESS = ["POST /jobs", "POST /jobs/*", "PUT /jobs/*", "DELETE /jobs/*"]
READ_ACCESS = ["GET /jobs/*", "POST /schedules/preview"]

API_TIMEOUT = Duration.seconds(10)
ENQUEUER_TIMEOUT = Duration.seconds(30)
# Lambda's limit, in every environment: a job's timeout_seconds means the same wherever it runs.
WORKER_TIMEOUT = Duration.minutes(15)
WATCHER_TIMEOUT = Duration.minutes(2)
# Six times the watcher's timeout, as AWS advises.
DUE_QUEUE_VISIBILITY = Duration.minutes(12)

# ListStreams cannot be limited to a stream (only to "*"), and a mapping that is given the stream's ARN does not
# call it. It is here because Lambda's check of the role asks for it by name.
READ_STREAM = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
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


class SchedulerStack(Stack):
    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        root: Path,
        dependencies: Path,
        synthesizer: IStackSynthesizer | None = None,
    ) -> None:
        self._name = f"duetime-{environment.name}"
        super().__init__(
            scope,
            self._name,
            description=f"Duetime, the job scheduler ({environment.name})",
            termination_protection=environment.settings.keep_data,
            synthesizer=synthesizer,
        )
        self._create_state(environment.settings)
        self._layers = Layers(self, "Layers", sources=root / "layers", dependencies=dependencies)
        self._workplace = Workplace(
            environment=environment.name,
            log_level=environment.settings.log_level,
            log_days=environment.settings.retention.function_log_days,
            sources=root / "functions",
        )
        self._create_functions(environment.settings)
        self._create_api(environment.settings)
        self._wake_functions(environment.settings)
        self._grant_to_functions(SEND_IN_EMULATOR if environment.is_local else SEND)
        self._grant_to_watcher(SEND_IN_EMULATOR if environment.is_local else SEND)
        if environment.is_local:
            self._grant_for_emulator()
        self._grant_to_schedules()
        self._write_outputs()

    def _create_state(self, settings: Settings) -> None:
        keep_data, tls_only = settings.keep_data, settings.tls_only
        self._storage = Storage(self, "Storage", keep_data=keep_data, warm=settings.warm_throughput)
        SpillBucket(self, "Spill", keep_data=keep_data, tls_only=tls_only, retention=settings.retention)
        run_queues = RunQueues(self, "RunQueues", worker_timeout=WORKER_TIMEOUT, tls_only=tls_only)
        self._run_queues = run_queues.by_priority
        self._stream_failures = StreamFailures(self, "StreamFailures", tls_only=tls_only)
        self._due = RedrivenQueue(self, "Due", visibility_timeout=DUE_QUEUE_VISIBILITY, tls_only=tls_only)
        self._wake_ups = WakeUps(self, "WakeUps")

    def _create_functions(self, settings: Settings) -> None:
        tables = {
            "DUETIME_JOBS_TABLE": self._storage.jobs.table_name,
            "DUETIME_RUNS_TABLE": self._storage.runs.table_name,
        }
        admins = {"DUETIME_ADMINS": json.dumps(settings.admins)}
        targets = {"DUETIME_ALLOWED_TARGETS": json.dumps(asdict(settings.allowed_targets))}
        queues = self._queue_variables(settings)
        wakeups = {"DUETIME_WAKEUPS": self.to_json_string(self._wakeup_variables())}
        self._job_service = self._function(
            "job_service",
            settings.job_service.memory_mb,
            API_TIMEOUT,
            {**tables, **targets, **admins, **wakeups},
        )
        self._job_search = self._function(
            "job_search", settings.job_search.memory_mb, API_TIMEOUT, {**tables, **admins}
        )
        self._enqueuer = self._function(
            "enqueuer",
            settings.enqueuer.memory_mb,
            ENQUEUER_TIMEOUT,
            {"DUETIME_RUNS_TABLE": tables["DUETIME_RUNS_TABLE"], **queues},
        )
        self._watcher = self._function(
            "watcher", settings.watcher.memory_mb, WATCHER_TIMEOUT, {**tables, **queues, **wakeups}
        )
        run_queues = {"DUETIME_RUN_QUEUE_URLS": queues["DUETIME_RUN_QUEUE_URLS"]}
        self._worker = self._function(
            "worker", settings.worker.memory_mb, WORKER_TIMEOUT, {**tables, **targets, **run_queues}
        )
        self._worker.function.add_layers(self._layers.tasks)

    def _function(
        self, name: str, memory_mb: int, timeout: Duration, variables: Mapping[str, str]
    ) -> Function:
        return Function(
            self,
            name.title().replace("_", ""),
            name=name,
            workplace=self._workplace,
            layers=[self._layers.core, self._layers.dependencies],
            memory_mb=memory_mb,
            timeout=timeout,
            variables=variables,
        )

    def _queue_variables(self, settings: Settings) -> dict[str, str]:
        return {
            "DUETIME_RUN_QUEUE_URLS": self.to_json_string(_urls(self._run_queues_by_priority())),
            "DUETIME_DEAD_LETTER_QUEUE_URLS": self.to_json_string(_urls(self._dead_letters_by_priority())),
            "DUETIME_DUE_QUEUE_URL": self._due.queue.queue_url,
            "DUETIME_HINT_LEAD_MS": str(settings.hint_lead_ms),
        }

    def _wakeup_variables(self) -> dict[str, str]:
        return {
            "group": self._wake_ups.group.schedule_group_name,
            "role_arn": self._wake_ups.role.role_arn,
            "queue_arn": self._due.queue.queue_arn,
            "dead_letter_queue_arn": self._due.dead_letters.queue_arn,
        }

    def _create_api(self, settings: Settings) -> None:
        log_days = settings.retention.function_log_days
        self._api = SignedHttpApi(self, "HttpApi", name=self._name, limits=settings.api, log_days=log_days)
        self._api.serve(self._job_service.function, WRITE_ROUTES)
        self._api.serve(self._job_search.function, READ_ROUTES)
        self._operator = AccessPolicy(
            self,
            "OperatorPolicy",
            api=self._api,
            routes=[*WRITE_ACCESS, *READ_ACCESS],
            description=f"May submit jobs to {self._name}, and change and read its own",
        )
        self._viewer = AccessPolicy(
            self,
            "ViewerPolicy",
            api=self._api,
            routes=READ_ACCESS,
            description=f"May read its own jobs in {self._name}",
        )

    def _wake_functions(self, settings: Settings) -> None:
        RunStreamSource(
            self,
            "EnqueuerSource",
            function=self._enqueuer.function,
            stream_arn=self._storage.runs_stream_arn,
            parallelization=settings.enqueuer.stream_parallelization,
            failures=self._stream_failures,
        )
        DueQueueSource(
            self,
            "WatcherSource",
            function=self._watcher.function,
            queue=self._due.queue,
            max_concurrency=settings.watcher.max_concurrency,
        )
        self._wake_ups.add_backstop(self._due.queue, self._due.dead_letters)
        for priority, scaling in settings.worker.scaling.by_priority():
            RunQueueSource(
                self,
                f"WorkerSource{priority.title()}",
                function=self._worker.function,
                queue=self._run_queues[priority].queue,
                scaling=scaling,
            )

    def _grant_to_functions(self, send: list[str]) -> None:
        jobs, runs = self._storage.jobs.table_arn, self._storage.runs.table_arn
        stream = self._storage.runs_stream_arn
        run_queues = _arns(self._run_queues_by_priority())
        dead_letters = _arns(self._dead_letters_by_priority())

        self._job_service.allow(["dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:UpdateItem"], [jobs])
        self._job_service.allow(["dynamodb:PutItem"], [runs])
        self._allow_wakeups(self._job_service)

        self._job_search.allow(["dynamodb:GetItem"], [jobs])
        self._job_search.allow(["dynamodb:GetItem", "dynamodb:Query"], [runs])

        self._enqueuer.allow(["dynamodb:UpdateItem"], [runs])
        self._enqueuer.allow(READ_STREAM, [stream])
        self._enqueuer.allow(send, [*run_queues, *dead_letters, self._due.queue.queue_arn])
        # Lambda itself reports the records it gave up on, but in the function's name.
        self._enqueuer.allow(SEND, [self._stream_failures.queue_arn])

        self._worker.allow(["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [jobs, runs])
        # To find the next run that waits for its turn.
        self._worker.allow(["dynamodb:Query"], [runs])
        self._worker.allow(CONSUME_QUEUE, run_queues)

    def _grant_to_watcher(self, send: list[str]) -> None:
        jobs, runs = self._storage.jobs.table_arn, self._storage.runs.table_arn
        self._watcher.allow(["dynamodb:Query"], [f"{jobs}/index/waiting", f"{runs}/index/watch"])
        self._watcher.allow(["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [jobs, runs])
        self._watcher.allow(["dynamodb:PartiQLUpdate"], [jobs])
        self._watcher.allow(["dynamodb:PutItem"], [runs])
        self._watcher.allow(CONSUME_QUEUE, [self._due.queue.queue_arn])
        told = [*_arns(self._run_queues_by_priority()), *_arns(self._dead_letters_by_priority())]
        self._watcher.allow(send, [*told, self._due.queue.queue_arn])
        self._allow_wakeups(self._watcher)

    def _allow_wakeups(self, function: Function) -> None:
        function.allow(["scheduler:CreateSchedule"], [self._wake_ups.any_schedule_arn])
        # A schedule acts with a role, and whoever creates it must be allowed to lend it that role, and only so.
        function.allow(
            ["iam:PassRole"],
            [self._wake_ups.role.role_arn],
            {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        )
        acknowledge(
            function.role,
            f"AwsSolutions-IAM5[Resource::{self._wake_ups.any_schedule_shown_by_nag}]",
            "One schedule per occupied minute: their names are times that nobody can list beforehand. The group is "
            "Duetime's own.",
        )

    def _grant_for_emulator(self) -> None:
        self._watcher.allow(BATCH_IN_EMULATOR, ["*"])
        acknowledge(
            self._watcher.role,
            "AwsSolutions-IAM5[Resource::*]",
            "Only in the emulator: it asks for an action that AWS does not have, and names no table with it.",
        )
        for function in (self._job_service, self._watcher):
            schedules = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/*"
            function.allow(["scheduler:CreateSchedule"], [schedules])
            acknowledge(
                function.role,
                f"AwsSolutions-IAM5[Resource::{schedules}]",
                "Only in the emulator: to its IAM every schedule is in the default group.",
            )

    def _grant_to_schedules(self) -> None:
        # EventBridge also writes to the dead-letter queue with this role.
        resources = [self._due.queue.queue_arn, self._due.dead_letters.queue_arn]
        self._wake_ups.role.add_to_policy(iam.PolicyStatement(actions=SEND, resources=resources))

    def _write_outputs(self) -> None:
        outputs = {
            "ApiUrl": self._api.api.api_endpoint,
            "ApiId": self._api.api.api_id,
            "Region": Aws.REGION,
            "JobsTableName": self._storage.jobs.table_name,
            "RunsTableName": self._storage.runs.table_name,
            "OperatorPolicyArn": self._operator.managed_policy_arn,
            "ViewerPolicyArn": self._viewer.managed_policy_arn,
            "WorkerFunctionName": self._worker.function.function_name,
            "WatcherFunctionName": self._watcher.function.function_name,
            "DueQueueUrl": self._due.queue.queue_url,
            "ScheduleGroupName": self._wake_ups.group.schedule_group_name,
        }
        for priority, queue in self._run_queues_by_priority().items():
            outputs[f"RunQueueUrl{priority.title()}"] = queue.queue_url
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)

    def _run_queues_by_priority(self) -> dict[str, sqs.Queue]:
        return {priority: redriven.queue for priority, redriven in self._run_queues.items()}

    def _dead_letters_by_priority(self) -> dict[str, sqs.Queue]:
        return {priority: redriven.dead_letters for priority, redriven in self._run_queues.items()}


def _urls(queues: Mapping[str, sqs.Queue]) -> dict[str, str]:
    return {priority: queue.queue_url for priority, queue in queues.items()}


def _arns(queues: Mapping[str, sqs.Queue]) -> list[str]:
    return [queue.queue_arn for queue in queues.values()]
