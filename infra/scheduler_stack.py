"""The whole of Duetime in one stack: what there is, what wakes what, and who may do what."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from aws_cdk import Aws, CfnOutput, Duration, IStackSynthesizer, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.access_policy import AccessPolicy
from infra.constructs.event_sources import (
    COUNTED,
    HINTED,
    DueQueueSource,
    NoticesSource,
    RunQueueSource,
    RunStreamSource,
)
from infra.constructs.function import Function, Workplace
from infra.constructs.http_api import SignedHttpApi
from infra.constructs.layers import Layers
from infra.constructs.monitoring import Monitoring
from infra.constructs.queues import RedrivenQueue, RunQueues, StreamFailures
from infra.constructs.schedule_group import WakeUps
from infra.constructs.signing_secret import SigningSecret
from infra.constructs.spill_bucket import SpillBucket
from infra.constructs.storage import Storage
from infra.constructs.work_reports import WorkReports
from infra.environments import Environment, Settings
from infra.grants import (
    Resources,
    grant_enqueuer,
    grant_job_search,
    grant_job_service,
    grant_notifier,
    grant_schedules,
    grant_status_feed,
    grant_watcher,
    grant_worker,
)
from infra.parts import Parts
from infra.settings import SettingsError
from infra.target_grants import by_service

WRITE_ROUTES = [
    "POST /jobs",
    "POST /jobs/batch",
    "POST /jobs/bulk",
    "PUT /jobs/{job_id}",
    "DELETE /jobs/{job_id}",
    "POST /jobs/{job_id}/pause",
    "POST /jobs/{job_id}/resume",
    "POST /jobs/{job_id}/runNow",
    "POST /jobs/{job_id}/runs/{run_id}/cancel",
    "POST /jobs/{job_id}/runs/{run_id}/redrive",
    "POST /jobs/{job_id}/runs/{run_id}/heartbeat",
    "POST /jobs/{job_id}/runs/{run_id}/complete",
    "POST /jobs/{job_id}/runs/{run_id}/fail",
    "POST /dead-letters/redrive",
    "POST /subscriptions",
    "DELETE /subscriptions/{subscription_id}",
]
READ_ROUTES = [
    "GET /jobs",
    "GET /executions",
    "GET /subscriptions",
    "GET /health",
    "GET /openapi.json",
    "GET /jobs/{job_id}",
    "GET /jobs/{job_id}/status",
    "GET /jobs/{job_id}/runs",
    "GET /jobs/{job_id}/runs/{run_id}",
    "GET /jobs/{job_id}/upcoming",
    "GET /jobs/{job_id}/logs",
    "GET /jobs/{job_id}/events",
    "GET /jobs/{job_id}/explain",
    "GET /dead-letters",
    "POST /schedules/preview",
]
LONGEST_TARGETS = 2500
# In a policy `*` spans slashes too, so these cover all of the routes.
WRITE_ACCESS = [
    "POST /jobs",
    "POST /jobs/*",
    "PUT /jobs/*",
    "DELETE /jobs/*",
    "POST /dead-letters/redrive",
    "POST /subscriptions",
    "DELETE /subscriptions/*",
]
READ_ACCESS = [
    "GET /jobs",
    "GET /jobs/*",
    "GET /executions",
    "GET /subscriptions",
    "GET /dead-letters",
    "GET /health",
    "GET /openapi.json",
    "POST /schedules/preview",
]
# For the system that does an attempt's work; the attempt's token does the rest.
REPORT_ACCESS = [f"POST /jobs/*/runs/*/{verb}" for verb in ("heartbeat", "complete", "fail")]

ACCOUNT_SHOWN_BY_NAG = "arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>"

API_TIMEOUT = Duration.seconds(10)
STREAM_TIMEOUT = Duration.seconds(30)
# Lambda's limit, in every environment: a job's timeout_seconds means the same wherever it runs.
WORKER_TIMEOUT = Duration.minutes(15)
WATCHER_TIMEOUT = Duration.minutes(2)
# Not six times the timeout, as AWS advises for batches: a watcher takes one message, and one that died must not be
# missed for long.
DUE_QUEUE_VISIBILITY = Duration.minutes(4)


NOTIFIER_TIMEOUT = Duration.minutes(2)
# Whoever does not answer is told again for about four hours: see `pause_before` in delivering.py.
NOTICE_DELIVERIES = 10


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
        self._grant(environment)
        self._watch_over(environment)
        self._write_outputs()

    def _create_state(self, settings: Settings) -> None:
        keep_data, tls_only = settings.keep_data, settings.tls_only
        self._storage = Storage(self, "Storage", keep_data=keep_data, warm=settings.warm_throughput)
        self._bucket = SpillBucket(
            self, "Spill", keep_data=keep_data, tls_only=tls_only, retention=settings.retention
        )
        run_queues = RunQueues(self, "RunQueues", worker_timeout=WORKER_TIMEOUT, tls_only=tls_only)
        self._run_queues = run_queues.by_priority
        self._stream_failures = StreamFailures(self, "StreamFailures", tls_only=tls_only)
        self._feed_failures = StreamFailures(self, "FeedFailures", tls_only=tls_only)
        self._due = RedrivenQueue(self, "Due", visibility_timeout=DUE_QUEUE_VISIBILITY, tls_only=tls_only)
        self._wake_ups = WakeUps(self, "WakeUps")
        self._notices = RedrivenQueue(
            self,
            "Notices",
            visibility_timeout=Duration.seconds(6 * NOTIFIER_TIMEOUT.to_seconds()),
            tls_only=tls_only,
            deliveries=NOTICE_DELIVERIES,
        )
        self._signing_secret = SigningSecret(self, "SigningSecret", keep_data=keep_data)

    def _create_functions(self, settings: Settings) -> None:
        tables = {
            "DUETIME_JOBS_TABLE": self._storage.jobs.table_name,
            "DUETIME_RUNS_TABLE": self._storage.runs.table_name,
            "DUETIME_RUN_DAYS": str(settings.retention.run_days),
        }
        spill = {"DUETIME_SPILL_BUCKET": self._bucket.bucket_name}
        logs = {
            "DUETIME_RECORDS_TABLE": self._storage.records.table_name,
            "DUETIME_RUN_LOG_DAYS": str(settings.retention.run_log_days),
        }
        events = {
            "DUETIME_RECORDS_TABLE": self._storage.records.table_name,
            "DUETIME_EVENT_DAYS": str(settings.retention.event_days),
        }
        quotas = {"DUETIME_QUOTAS": json.dumps([asdict(quota) for quota in settings.quotas])}
        admins = {"DUETIME_ADMINS": json.dumps(settings.admins)}
        targets = {"DUETIME_ALLOWED_TARGETS": _targets_variable(settings)}
        signing = {"DUETIME_SIGNING_SECRET_ARN": self._signing_secret.arn}
        notices = {"DUETIME_NOTICES_QUEUE_URL": self._notices.queue.queue_url}
        topics = {"DUETIME_NOTICE_TOPICS": self._notice_topics}
        queues = self._queue_variables(settings)
        wakeups = {"DUETIME_WAKEUPS": self.to_json_string(self._wakeup_variables())}
        self._job_service = self._function(
            "job_service",
            settings.job_service.memory_mb,
            API_TIMEOUT,
            {
                **tables,
                **targets,
                **admins,
                **wakeups,
                **spill,
                **events,
                **quotas,
                **signing,
                **notices,
                **topics,
            },
        )
        self._job_search = self._function(
            "job_search",
            settings.job_search.memory_mb,
            API_TIMEOUT,
            {**tables, **admins, **spill, **logs, **signing},
        )
        self._enqueuer = self._function(
            "enqueuer",
            settings.enqueuer.memory_mb,
            STREAM_TIMEOUT,
            {"DUETIME_RUNS_TABLE": tables["DUETIME_RUNS_TABLE"], **queues},
        )
        self._status_feed = self._function(
            "status_feed",
            settings.status_feed.memory_mb,
            STREAM_TIMEOUT,
            {"DUETIME_RECORDS_TABLE": self._storage.records.table_name, **notices},
        )
        self._watcher = self._function(
            "watcher",
            settings.watcher.memory_mb,
            WATCHER_TIMEOUT,
            {**tables, **queues, **wakeups, **spill, **events, **notices},
        )
        run_queues = {"DUETIME_RUN_QUEUE_URLS": queues["DUETIME_RUN_QUEUE_URLS"]}
        self._worker = self._function(
            "worker",
            settings.worker.memory_mb,
            WORKER_TIMEOUT,
            {**tables, **targets, **run_queues, **spill, **logs},
        )
        self._notifier = self._function(
            "notifier",
            settings.notifier.memory_mb,
            NOTIFIER_TIMEOUT,
            {
                "DUETIME_JOBS_TABLE": tables["DUETIME_JOBS_TABLE"],
                "DUETIME_RECORDS_TABLE": self._storage.records.table_name,
                **targets,
                **signing,
                **notices,
                **topics,
            },
        )
        # A kind of task that a team registers is checked when a job is written, too.
        for function in (self._worker, self._job_service, self._watcher):
            function.function.add_layers(self._layers.tasks)

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

    @property
    def _notice_topics(self) -> str:
        """How the ARNs of the owners' topics begin. They are made when an owner first needs one."""
        return self.format_arn(service="sns", resource=f"{self._name}-notices-")

    def _create_api(self, settings: Settings) -> None:
        log_days = settings.retention.function_log_days
        self._api = SignedHttpApi(self, "HttpApi", name=self._name, limits=settings.api, log_days=log_days)
        self._api.serve(self._job_service.function, WRITE_ROUTES)
        self._api.serve(self._job_search.function, READ_ROUTES)
        known = {*WRITE_ROUTES, *READ_ROUTES}
        for limit in settings.api.routes:
            if limit.route not in known:
                raise SettingsError(
                    f"api.routes has '{limit.route}' in cdk.json, which is no route of the API"
                )
        self._api.limit(settings.api.routes)
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

        self._admin = AccessPolicy(
            self,
            "AdminPolicy",
            api=self._api,
            routes=["* /*"],
            description=f"May call everything of {self._name}; sees every owner's jobs if listed in its admins",
        )
        self._reporter = AccessPolicy(
            self,
            "ReporterPolicy",
            api=self._api,
            routes=REPORT_ACCESS,
            description=f"May report on work that {self._name} gave away, with the token of the attempt",
        )

    def _wake_functions(self, settings: Settings) -> None:
        RunStreamSource(
            self,
            "EnqueuerSource",
            function=self._enqueuer.function,
            stream_arn=self._storage.runs_stream_arn,
            patterns=HINTED,
            parallelization=settings.enqueuer.stream_parallelization,
            failures=self._stream_failures,
        )
        RunStreamSource(
            self,
            "StatusFeedSource",
            function=self._status_feed.function,
            stream_arn=self._storage.runs_stream_arn,
            patterns=COUNTED,
            parallelization=settings.status_feed.stream_parallelization,
            failures=self._feed_failures,
        )
        DueQueueSource(
            self,
            "WatcherSource",
            function=self._watcher.function,
            queue=self._due.queue,
            max_concurrency=settings.watcher.max_concurrency,
        )
        NoticesSource(
            self,
            "NotifierSource",
            function=self._notifier.function,
            queue=self._notices.queue,
            max_concurrency=settings.notifier.max_concurrency,
        )
        self._wake_ups.add_backstop(self._due.queue, self._due.dead_letters)
        started = by_service(_arns_of(settings))
        WorkReports(self, "WorkReports", queue=self._due.queue, services=started)
        for priority, scaling in settings.worker.scaling.by_priority():
            RunQueueSource(
                self,
                f"WorkerSource{priority.title()}",
                function=self._worker.function,
                queue=self._run_queues[priority].queue,
                scaling=scaling,
            )

    def _grant(self, environment: Environment) -> None:
        resources = Resources(
            storage=self._storage,
            bucket=self._bucket,
            run_queues=self._run_queues,
            due=self._due,
            stream_failures=self._stream_failures,
            feed_failures=self._feed_failures,
            wake_ups=self._wake_ups,
            signing_secret=self._signing_secret,
            notices=self._notices,
            notice_topics=f"{self._notice_topics}*",
            notice_topics_shown_by_nag=f"{ACCOUNT_SHOWN_BY_NAG.format(service='sns')}:{self._name}-notices-*",
            targets=_arns_of(environment.settings),
            in_emulator=environment.is_local,
        )
        grant_job_service(self._job_service, resources)
        grant_job_search(self._job_search, resources)
        grant_enqueuer(self._enqueuer, resources)
        grant_status_feed(self._status_feed, resources)
        grant_watcher(self._watcher, resources)
        grant_worker(self._worker, resources)
        grant_notifier(self._notifier, resources)
        grant_schedules(resources)

    def _watch_over(self, environment: Environment) -> None:
        """Each new function, queue or table is one more line here."""
        parts = Parts(
            environment=environment.name,
            functions={
                "job_service": self._job_service.function,
                "job_search": self._job_search.function,
                "watcher": self._watcher.function,
                "enqueuer": self._enqueuer.function,
                "status_feed": self._status_feed.function,
                "worker": self._worker.function,
                "notifier": self._notifier.function,
            },
            run_queues=self._run_queues_by_priority(),
            inner_queues={"due": self._due.queue, "notices": self._notices.queue},
            dead_letters=self._dead_letters_by_priority(),
            undelivered={
                "due": self._due.dead_letters,
                "stream": self._stream_failures,
                "feed": self._feed_failures,
                "notices": self._notices.dead_letters,
            },
            tables={
                "jobs": self._storage.jobs,
                "runs": self._storage.runs,
                "records": self._storage.records,
            },
            api=self._api.api,
            access_log=self._api.access_log,
        )
        self._monitoring = Monitoring(
            self,
            "Monitoring",
            parts=parts,
            settings=environment.settings.alarms,
            tls_only=environment.settings.tls_only,
            in_emulator=environment.is_local,
        )

    def _write_outputs(self) -> None:
        outputs = {
            "ApiUrl": self._api.api.api_endpoint,
            "ApiId": self._api.api.api_id,
            "Region": Aws.REGION,
            "JobsTableName": self._storage.jobs.table_name,
            "RunsTableName": self._storage.runs.table_name,
            "OperatorPolicyArn": self._operator.managed_policy_arn,
            "ViewerPolicyArn": self._viewer.managed_policy_arn,
            "AdminPolicyArn": self._admin.managed_policy_arn,
            "ReporterPolicyArn": self._reporter.managed_policy_arn,
            "RecordsTableName": self._storage.records.table_name,
            "SpillBucketName": self._bucket.bucket_name,
            "WorkerFunctionName": self._worker.function.function_name,
            "WatcherFunctionName": self._watcher.function.function_name,
            "NoticesQueueUrl": self._notices.queue.queue_url,
            "SigningSecretArn": self._signing_secret.arn,
            "DueQueueUrl": self._due.queue.queue_url,
            "AlarmTopicArn": self._monitoring.topic.topic_arn,
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


def _arns_of(settings: Settings) -> list[str]:
    return sorted({arn for rule in settings.allowed_targets for arn in rule.arns})


def _targets_variable(settings: Settings) -> str:
    text = json.dumps([asdict(rule) for rule in settings.allowed_targets], separators=(",", ":"))
    if len(text) > LONGEST_TARGETS:
        raise SettingsError(
            f"allowed_targets is {len(text)} bytes as JSON, and Lambda takes 4 KB of settings in all: use patterns"
        )
    return text
