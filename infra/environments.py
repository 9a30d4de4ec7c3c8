"""One frozen block of settings per environment, read from cdk.json. docs/environments.md says what each is for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.settings import Place, SettingsError, between, each, is_address, is_cidr, one_of, read_block
from infra.target_grants import is_grantable, reaches_duetime

PRIORITIES = ("high", "medium", "low")
# The only values that CloudWatch Logs takes; longer ones are left out.
LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365)


@dataclass(frozen=True)
class Concurrency:
    """At most so many workers at once; costs nothing while idle, and grows by 300 a minute."""

    max_concurrency: int = between(2, 1000)


@dataclass(frozen=True)
class Pollers:
    """Pollers that are always there. AWS lets a mapping have these or a maximum concurrency, not both."""

    min_pollers: int = between(2, 200)
    max_pollers: int = between(2, 2000)

    def __post_init__(self) -> None:
        if self.min_pollers > self.max_pollers:
            raise ValueError(
                f"has min_pollers {self.min_pollers} above max_pollers {self.max_pollers} in cdk.json"
            )


@dataclass(frozen=True)
class Scaling:
    high: Concurrency | Pollers
    medium: Concurrency | Pollers
    low: Concurrency | Pollers

    def by_priority(self) -> Iterator[tuple[str, Concurrency | Pollers]]:
        return ((priority, getattr(self, priority)) for priority in PRIORITIES)


@dataclass(frozen=True)
class Handler:
    memory_mb: int = between(128, 10240)


@dataclass(frozen=True)
class StreamReader:
    memory_mb: int = between(128, 10240)
    stream_parallelization: int = between(1, 10)


@dataclass(frozen=True)
class Watcher:
    memory_mb: int = between(128, 10240)
    max_concurrency: int = between(2, 1000)


@dataclass(frozen=True)
class Notifier:
    memory_mb: int = between(128, 10240)
    max_concurrency: int = between(2, 1000)


@dataclass(frozen=True)
class Worker:
    scaling: Scaling
    memory_mb: int = between(128, 10240)


@dataclass(frozen=True)
class RouteLimit:
    """Of one route, such as `POST /jobs/bulk`, below the stage's."""

    route: str
    requests_per_second: int = between(1, 1_000_000)
    burst: int = between(1, 1_000_000)


@dataclass(frozen=True)
class Api:
    routes: tuple[RouteLimit, ...]
    requests_per_second: int = between(1, 1_000_000)
    burst: int = between(1, 1_000_000)


@dataclass(frozen=True)
class Throughput:
    # What a new on-demand table has anyway; AWS refuses to warm it to less.
    reads_per_second: int = between(12_000, 10_000_000)
    writes_per_second: int = between(4_000, 10_000_000)


@dataclass(frozen=True)
class WarmThroughput:
    jobs: Throughput
    jobs_waiting: Throughput
    jobs_by_owner: Throughput
    runs: Throughput
    runs_watch: Throughput
    records: Throughput


@dataclass(frozen=True)
class Retention:
    function_log_days: int = one_of(*LOG_DAYS)
    run_days: int = between(1, 3650)
    run_log_days: int = between(1, 3650)
    run_result_days: int = between(1, 3650)
    event_days: int = between(1, 3650)


@dataclass(frozen=True)
class AllowedTargets:
    """What the tasks of some principals may reach."""

    principals: tuple[str, ...]
    python: tuple[str, ...]
    arns: tuple[str, ...] = each(is_grantable)
    http_private_addresses: tuple[str, ...] = each(is_cidr)


@dataclass(frozen=True)
class Quota:
    """How many jobs each of some principals may have that have not ended. The first that matches counts."""

    principals: tuple[str, ...]
    waiting_jobs: int = between(1, 100_000_000)


@dataclass(frozen=True)
class AlarmSettings:
    """Whom alarms tell, and the most of each that is still well; counts are of five minutes."""

    recipients: tuple[str, ...] = each(is_address)
    lateness_p99_ms: int = between(1, 3_600_000)
    waiting_late_runs: int = between(0, 1_000_000)
    failure_rate_percent: int = between(0, 99)
    failure_rate_min_runs: int = between(1, 1_000_000)
    missed_fires: int = between(0, 1_000_000)
    duplicated_fires: int = between(0, 1_000_000)
    dead_letters: int = between(0, 1_000_000)
    undelivered_messages: int = between(0, 1_000_000)
    # Not less than a hint may be there in good order: a retry's delay, and then a worker's time, of 15 minutes each.
    oldest_hint_seconds: int = between(1800, 345_600)
    # Nor this: a patrol's delay of up to 15 minutes, and a watcher's time.
    oldest_inner_message_seconds: int = between(1020, 345_600)
    stream_age_ms: int = between(1, 3_600_000)
    function_errors: int = between(0, 1_000_000)
    throttles: int = between(0, 1_000_000)
    dropped_invocations: int = between(0, 1_000_000)
    api_5xx: int = between(0, 1_000_000)
    # Two ticks of the backstop and some minutes, or more. Whole steps of five minutes, less than a day.
    watcher_silent_minutes: int = one_of(35, 50, 65, 95, 125)


@dataclass(frozen=True)
class Settings:
    keep_data: bool
    # Off only where there is no TLS to insist on: the emulator enforces the policy, and speaks plain HTTP.
    tls_only: bool
    admins: tuple[str, ...]
    allowed_targets: tuple[AllowedTargets, ...]
    quotas: tuple[Quota, ...]
    retention: Retention
    alarms: AlarmSettings
    api: Api
    job_service: Handler
    job_search: Handler
    enqueuer: StreamReader
    status_feed: StreamReader
    watcher: Watcher
    worker: Worker
    notifier: Notifier
    warm_throughput: WarmThroughput | None
    # How much earlier than its run a hint shall arrive at a worker: as much as the queue may be late.
    hint_lead_ms: int = between(0, 2000)
    log_level: str = one_of("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True)
class Environment:
    name: str
    settings: Settings

    @property
    def is_local(self) -> bool:
        return self.name == "local"


def read_environment(name: object, blocks: object) -> Environment:
    """`name` is what `-c env=NAME` said, `blocks` is `environments` in the context of cdk.json."""
    if not isinstance(blocks, Mapping) or not blocks:
        raise SettingsError(
            "cdk.json has no 'environments' in its context: run the CDK from the folder of cdk.json"
        )
    listed = ", ".join(blocks)
    if not name:
        raise SettingsError(f"no environment was given: add '-c env=NAME', where NAME is one of {listed}")
    if not isinstance(name, str) or name not in blocks:
        raise SettingsError(f"environment '{name}' is not in cdk.json, which has {listed}")
    settings = read_block(Settings, blocks[name], Place(name))
    for number, rule in enumerate(settings.allowed_targets):
        for pattern in rule.arns:
            if reaches_duetime(pattern):
                place = Place(name).of("allowed_targets").of(str(number)).of("arns")
                raise place.error(
                    f"has {pattern} in cdk.json, which would let tasks reach Duetime itself: "
                    "a pattern must not cover names that begin with duetime-"
                )
    return Environment(name, settings)
