from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.environments import Throughput, WarmThroughput
from infra.projections import LISTED, WATCHED


class Storage(Construct):
    """The tables `jobs`, `runs` and `records` (what surrounds them, and expires). DynamoDB always encrypts them,
    here with its own key: no KMS call per request."""

    def __init__(
        self, scope: Construct, construct_id: str, *, keep_data: bool, warm: WarmThroughput | None
    ) -> None:
        super().__init__(scope, construct_id)
        self._keep_data = keep_data
        self.jobs = self._jobs(warm)
        self.runs = self._runs(warm)
        self.records = self._table(
            "Records",
            partition_key=_text("subject"),
            sort_key=_text("entry"),
            time_to_live_attribute="expires_at",
            warm_throughput=_warm(warm.records if warm else None),
        )
        assert self.runs.table_stream_arn is not None
        self.runs_stream_arn = self.runs.table_stream_arn

    def _jobs(self, warm: WarmThroughput | None) -> dynamodb.Table:
        jobs = self._table(
            "Jobs", partition_key=_text("job_id"), warm_throughput=_warm(warm.jobs if warm else None)
        )
        jobs.add_global_secondary_index(
            index_name="waiting",
            partition_key=_number("shard"),
            sort_key=_text("next_run_at"),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            warm_throughput=_warm(warm.jobs_waiting if warm else None),
        )
        jobs.add_global_secondary_index(
            index_name="by_owner",
            partition_key=_text("listing"),
            sort_key=_text("created_at"),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=LISTED,
            warm_throughput=_warm(warm.jobs_by_owner if warm else None),
        )
        return jobs

    def _runs(self, warm: WarmThroughput | None) -> dynamodb.Table:
        runs = self._table(
            "Runs",
            partition_key=_text("job_id"),
            sort_key=_text("run_id"),
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            time_to_live_attribute="expires_at",
            warm_throughput=_warm(warm.runs if warm else None),
        )
        runs.add_global_secondary_index(
            index_name="watch",
            partition_key=_text("watch_key"),
            sort_key=_text("watch_at"),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=WATCHED,
            warm_throughput=_warm(warm.runs_watch if warm else None),
        )
        return runs

    def _table(
        self,
        construct_id: str,
        *,
        partition_key: dynamodb.Attribute,
        sort_key: dynamodb.Attribute | None = None,
        stream: dynamodb.StreamViewType | None = None,
        time_to_live_attribute: str | None = None,
        warm_throughput: dynamodb.WarmThroughput | None,
    ) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            construct_id,
            partition_key=partition_key,
            sort_key=sort_key,
            stream=stream,
            time_to_live_attribute=time_to_live_attribute,
            warm_throughput=warm_throughput,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=self._keep_data,
            removal_policy=RemovalPolicy.RETAIN if self._keep_data else RemovalPolicy.DESTROY,
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


def _warm(throughput: Throughput | None) -> dynamodb.WarmThroughput | None:
    if throughput is None:
        return None
    return dynamodb.WarmThroughput(
        read_units_per_second=throughput.reads_per_second, write_units_per_second=throughput.writes_per_second
    )
