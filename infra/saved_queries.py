"""The questions of somebody on call, as CloudWatch Logs Insights asks them. docs/operations.md says when to ask."""

from collections.abc import Collection
from dataclasses import dataclass
from textwrap import dedent

from infra.alarms.functions import QUEUE_READERS, STREAM_READERS

ACCESS_LOG = "access"


@dataclass(frozen=True)
class SavedQuery:
    name: str
    question: str
    asked_so: str
    # Functions whose logs are searched, or ACCESS_LOG; none for those of all functions.
    logs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"# {self.question}\n{dedent(self.asked_so).strip()}"

    def logs_among(self, functions: Collection[str]) -> list[str]:
        wanted = self.logs or tuple(functions)
        return [name for name in wanted if name == ACCESS_LOG or name in functions]


QUERIES = [
    SavedQuery(
        "errors",
        "What went wrong, how often, and when last?",
        """
        filter level in ["ERROR", "CRITICAL"] or @message like /^\\[ERROR\\]/
        | fields coalesce(message, @message) as what
        | stats count(*) as times, max(@timestamp) as last_at by @log, what, exception_name
        | sort times desc
        """,
    ),
    SavedQuery(
        "crashes",
        "Which functions timed out, ran out of memory or did not start?",
        """
        filter @message like /Task timed out|Runtime exited|OutOfMemory|Unable to import module/
        | fields @timestamp, @log, @requestId, @message
        | sort @timestamp desc
        | limit 200
        """,
    ),
    SavedQuery(
        "durations",
        "How long do the functions take, and how much memory?",
        """
        filter @type = "REPORT"
        | fields 100 * @maxMemoryUsed / @memorySize as memory
        | stats count(*) as calls, pct(@duration, 50) as p50_ms, pct(@duration, 99) as p99_ms,
            max(@duration) as longest_ms, max(@initDuration) as coldest_ms, max(memory) as memory_percent
            by @log
        """,
    ),
    SavedQuery(
        "one-job",
        "What did every function say about this job? Put its job_id in.",
        """
        filter job_id = "PUT-THE-JOB-ID-HERE"
        | fields @timestamp, service, level, message, run_id, attempt, status, reason,
            exception_name
        | sort @timestamp
        | limit 1000
        """,
    ),
    SavedQuery(
        "one-run",
        "What did every function say about this run? Put its run_id in.",
        """
        filter run_id = "PUT-THE-RUN-ID-HERE"
        | fields @timestamp, service, level, message, attempt, status, reason, exception_name,
            @logStream
        | sort @timestamp
        | limit 1000
        """,
    ),
    SavedQuery(
        "one-request",
        "What did this invocation say? Put its function_request_id in.",
        """
        filter coalesce(function_request_id, @requestId) = "PUT-THE-REQUEST-ID-HERE"
        | fields @timestamp, service, level, message, @message
        | sort @timestamp
        """,
    ),
    SavedQuery(
        "failed-attempts",
        "Whose attempts fail, and whether they are tried again?",
        """
        filter message = "an attempt ended" and status in ["RETRYING", "FAILED"]
        | stats count(*) as times, max(attempt) as attempts, latest(run_id) as last_run
            by job_id, status
        | sort times desc
        | limit 100
        """,
        ("worker",),
    ),
    SavedQuery(
        "unworked-hints",
        "Which runs could a worker not even begin or finish, and why?",
        """
        filter message = "a run could not be worked on"
        | fields substr(exception, 0, 500) as trace
        | stats count(*) as times, latest(job_id) as last_job, latest(run_id) as last_run
            by exception_name, trace
        | sort times desc
        """,
        ("worker",),
    ),
    SavedQuery(
        "rescued-runs",
        "Which runs were left behind by a worker, or by a hint that got lost?",
        """
        filter message in ["a run was rescued", "a run was hinted again", "a run is late, and waits still",
            "a run was given up as undeliverable", "a run could not be looked after"]
        | fields @timestamp, message, job_id, run_id, attempt, status, reason
        | sort @timestamp desc
        | limit 200
        """,
        ("watcher",),
    ),
    SavedQuery(
        "sweeps",
        "How many jobs did sweeps plan, how many shards were handed on?",
        """
        filter message = "swept"
        | stats count(*) as sweeps, sum(jobs) as planned, sum(runs) as made, sum(handed_on) as shards
            by bin(5m)
        """,
        ("watcher",),
    ),
    SavedQuery(
        "unplannable-jobs",
        "Which jobs cannot be planned, and why?",
        """
        filter message = "a job cannot be planned"
        | stats count(*) as times, max(@timestamp) as last_at by job_id, reason
        | sort times desc
        """,
        ("watcher",),
    ),
    SavedQuery(
        "audit-findings",
        "Which times of which jobs had no run, or more than one?",
        """
        filter message like /(?i)(missed|duplicated) fire/
        | fields @timestamp, message, job_id, nominal_at, run_id
        | sort @timestamp desc
        | limit 500
        """,
        ("watcher",),
    ),
    SavedQuery(
        "unannounced-runs",
        "Which runs could the readers of the stream not tell anybody of?",
        """
        filter level in ["WARNING", "ERROR"]
        | fields @timestamp, service, message, job_id, run_id, attempt, exception_name
        | sort @timestamp desc
        | limit 200
        """,
        STREAM_READERS,
    ),
    SavedQuery(
        "refused-or-failed-requests",
        "Which requests got 4xx or 5xx, on which route?",
        """
        filter status >= 400
        | stats count(*) as times, max(latency_ms) as slowest_ms, latest(request_id) as last_request
            by status, route, integration_error
        | sort status desc, times desc
        """,
        (ACCESS_LOG,),
    ),
    SavedQuery(
        "throttled-callers",
        "Who is answered 429?",
        """
        filter status = 429
        | stats count(*) as times by caller, route, bin(5m)
        | sort times desc
        """,
        (ACCESS_LOG,),
    ),
    SavedQuery(
        "put-off-requests",
        "Why did we answer 503: which part of AWS refused?",
        """
        filter message in ["a request was put off", "a request failed"]
        | stats count(*) as times, latest(function_request_id) as last_request
            by service, message, reason, cause, exception_name
        | sort times desc
        """,
        ("job_service", "job_search"),
    ),
    SavedQuery(
        "calls-from-queues",
        "How often is each consumer of a queue called? A loop shows as a rise without more jobs.",
        """
        filter @type = "START"
        | stats count(*) as calls by @log, bin(1m)
        | sort calls desc
        | limit 500
        """,
        QUEUE_READERS,
    ),
]
