import json
from typing import Any

import pytest
from duetime.delivering import MOST_TRIES
from duetime.status import RunStatus

from tests.infra.conftest import ENVIRONMENTS, Synthesised

PRIORITIES = ("High", "Medium", "Low")


def target_of(value: Any) -> str:
    name: str = value["Fn::GetAtt"][0]
    return name


@pytest.mark.parametrize("name", [*(f"RunQueues{priority}" for priority in PRIORITIES), "Due"])
def test_a_queue_gives_up_on_a_message_after_five_deliveries(synthesised: Synthesised, name: str) -> None:
    _, queue = synthesised.one("AWS::SQS::Queue", f"{name}Queue")
    dead_letters, properties = synthesised.one("AWS::SQS::Queue", f"{name}DeadLetters")
    assert target_of(queue["RedrivePolicy"]["deadLetterTargetArn"]) == dead_letters
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
    assert properties["MessageRetentionPeriod"] == 14 * 86_400


def test_a_notice_that_cannot_be_delivered_is_given_up_after_ten_deliveries(synthesised: Synthesised) -> None:
    _, queue = synthesised.one("AWS::SQS::Queue", "NoticesQueue")
    dead_letters, properties = synthesised.one("AWS::SQS::Queue", "NoticesDeadLetters")
    assert target_of(queue["RedrivePolicy"]["deadLetterTargetArn"]) == dead_letters
    assert queue["RedrivePolicy"]["maxReceiveCount"] == MOST_TRIES == 10
    assert properties["MessageRetentionPeriod"] == 14 * 86_400


def test_the_notifier_takes_notices_by_the_batch(synthesised: Synthesised) -> None:
    _, mapping = synthesised.one("AWS::Lambda::EventSourceMapping", "NotifierSource")
    queue, properties = synthesised.one("AWS::SQS::Queue", "NoticesQueue")
    assert target_of(mapping["EventSourceArn"]) == queue
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (50, 1)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    expected = synthesised.environment.settings.notifier.max_concurrency
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": expected}
    assert properties["VisibilityTimeout"] == 6 * synthesised.function("notifier")["Timeout"]


def test_every_queue_is_standard_and_encrypted(synthesised: Synthesised) -> None:
    queues = synthesised.all("AWS::SQS::Queue").values()
    assert len(queues) == 12
    assert {(queue["SqsManagedSseEnabled"], "FifoQueue" in queue) for queue in queues} == {(True, False)}


def test_a_hint_stays_hidden_for_six_worker_timeouts(synthesised: Synthesised) -> None:
    timeout = synthesised.function("worker")["Timeout"]
    assert timeout == 900
    for priority in PRIORITIES:
        assert (
            synthesised.one("AWS::SQS::Queue", f"RunQueues{priority}Queue")[1]["VisibilityTimeout"]
            == 6 * timeout
        )


def refusing_plain_http(synthesised: Synthesised) -> set[str]:
    """The queues and buckets whose policy denies everything without TLS."""
    kinds = {"AWS::SQS::QueuePolicy": "Queues", "AWS::S3::BucketPolicy": "Bucket"}
    refusing = set()
    for kind, attribute in kinds.items():
        for policy in synthesised.all(kind).values():
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Deny" and statement.get("Condition") == {
                    "Bool": {"aws:SecureTransport": "false"}
                }:
                    of = policy[attribute]
                    refusing |= {each["Ref"] for each in (of if isinstance(of, list) else [of])}
    return refusing


def test_queues_and_bucket_refuse_plain_http_except_in_the_emulator(synthesised: Synthesised) -> None:
    expected = {*synthesised.all("AWS::SQS::Queue"), *synthesised.all("AWS::S3::Bucket")}
    assert refusing_plain_http(synthesised) == (set() if synthesised.environment.is_local else expected)


def test_only_the_emulator_is_without_tls() -> None:
    from tests.infra.conftest import BLOCKS

    assert [name for name in ENVIRONMENTS if not BLOCKS[name]["tls_only"]] == ["local"]


@pytest.mark.parametrize(
    ("reader", "failures"), [("Enqueuer", "StreamFailures"), ("StatusFeed", "FeedFailures")]
)
def test_a_reader_of_the_stream_goes_in_bounded_steps(
    synthesised: Synthesised, reader: str, failures: str
) -> None:
    _, mapping = synthesised.one("AWS::Lambda::EventSourceMapping", f"{reader}Source")
    runs, _ = synthesised.one("AWS::DynamoDB::Table", "StorageRuns")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [runs, "StreamArn"]}
    settings = synthesised.environment.settings
    reads = settings.enqueuer if reader == "Enqueuer" else settings.status_feed
    expected = {
        "BatchSize": 100,
        "BisectBatchOnFunctionError": True,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "MaximumBatchingWindowInSeconds": 0,
        "MaximumRetryAttempts": 10,
        "MaximumRecordAgeInSeconds": 900,
        "StartingPosition": "TRIM_HORIZON",
        "ParallelizationFactor": reads.stream_parallelization,
    }
    assert expected.items() <= mapping.items()
    queue, _ = synthesised.one("AWS::SQS::Queue", failures)
    assert target_of(mapping["DestinationConfig"]["OnFailure"]["Destination"]) == queue


def patterns_of(synthesised: Synthesised, source: str) -> list[Any]:
    _, mapping = synthesised.one("AWS::Lambda::EventSourceMapping", source)
    filters = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    # Lambda takes five.
    assert len(filters) <= 5
    return [each["dynamodb"] for each in filters]


def test_the_enqueuer_hears_of_runs_that_wait_or_failed(synthesised: Synthesised) -> None:
    assert patterns_of(synthesised, "EnqueuerSource") == [
        {"NewImage": {"status": {"S": ["QUEUED", "RETRYING", "FAILED"]}}}
    ]


def test_the_status_feed_hears_of_starts_ends_and_marks_but_not_of_heartbeats(
    synthesised: Synthesised,
) -> None:
    ends, starts, marks = patterns_of(synthesised, "StatusFeedSource")
    ended = {str(status) for status in RunStatus} - {"QUEUED", "RUNNING"}
    assert set(ends["NewImage"]["status"]["S"]) == ended
    assert starts == {"NewImage": {"status": {"S": ["RUNNING"]}}, "OldImage": {"status": {"S": ["QUEUED"]}}}
    assert marks == {"NewImage": {"status": {"S": ["QUEUED"]}, "late_at": {"S": [{"exists": True}]}}}


def test_a_watcher_takes_one_message_at_a_time(synthesised: Synthesised) -> None:
    _, mapping = synthesised.one("AWS::Lambda::EventSourceMapping", "WatcherSource")
    queue, properties = synthesised.one("AWS::SQS::Queue", "DueQueue")
    assert target_of(mapping["EventSourceArn"]) == queue
    assert mapping["BatchSize"] == 1
    expected = synthesised.environment.settings.watcher.max_concurrency
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": expected}
    # Long enough for one watcher, and not much longer: what a watcher that died had must come back soon.
    assert properties["VisibilityTimeout"] == 2 * synthesised.function("watcher")["Timeout"]


@pytest.mark.parametrize("priority", PRIORITIES)
def test_the_worker_takes_ten_hints_at_once_and_waits_for_none(
    synthesised: Synthesised, priority: str
) -> None:
    _, mapping = synthesised.one("AWS::Lambda::EventSourceMapping", f"WorkerSource{priority}")
    queue, _ = synthesised.one("AWS::SQS::Queue", f"RunQueues{priority}Queue")
    assert target_of(mapping["EventSourceArn"]) == queue
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (10, 0)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_workers_of_production_have_provisioned_pollers_and_no_concurrency_limit(
    prod: Synthesised,
) -> None:
    for priority in PRIORITIES:
        _, mapping = prod.one("AWS::Lambda::EventSourceMapping", f"WorkerSource{priority}")
        assert "ScalingConfig" not in mapping
        assert mapping["ProvisionedPollerConfig"]["MinimumPollers"] >= 2
