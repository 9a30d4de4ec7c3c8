from typing import Any

from duetime.dynamo_items import job_to_item, run_to_item

from tests.factories import NOW, a_job, a_run
from tests.infra.conftest import Properties, Synthesised
from tests.tables import create_tables


def table(synthesised: Synthesised, name: str) -> Properties:
    return synthesised.one("AWS::DynamoDB::Table", f"Storage{name}")[1]


def shape(properties: Properties) -> dict[str, Any]:
    """The keys of a table and of its indexes, with their types."""
    types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}

    def keys(schema: list[dict[str, str]]) -> list[tuple[str, str]]:
        return [(key["AttributeName"], types[key["AttributeName"]]) for key in schema]

    indexes = properties.get("GlobalSecondaryIndexes", [])
    return {"": keys(properties["KeySchema"])} | {i["IndexName"]: keys(i["KeySchema"]) for i in indexes}


def test_the_tables_have_these_keys_and_indexes(synthesised: Synthesised) -> None:
    assert shape(table(synthesised, "Jobs")) == {
        "": [("job_id", "S")],
        "waiting": [("shard", "N"), ("next_run_at", "S")],
        "by_owner": [("listing", "S"), ("created_at", "S")],
    }
    assert shape(table(synthesised, "Runs")) == {
        "": [("job_id", "S"), ("run_id", "S")],
        "watch": [("watch_key", "S"), ("watch_at", "S")],
    }
    assert shape(table(synthesised, "Records")) == {"": [("subject", "S"), ("entry", "S")]}


def test_the_tables_of_the_other_tiers_have_the_same_shape(prod: Synthesised) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.created: list[Properties] = []

        def create_table(self, **properties: Any) -> None:
            self.created.append(properties)

    create_tables(recorder := Recorder())
    deployed = [shape(table(prod, name)) for name in ("Jobs", "Runs", "Records")]
    assert [shape(created) for created in recorder.created] == deployed


def test_items_have_their_index_keys_with_the_types_that_the_indexes_want(prod: Synthesised) -> None:
    job = a_job(next_run_at=NOW)
    for name, item in (("Jobs", job_to_item(job)), ("Runs", run_to_item(a_run(job)))):
        for keys in shape(table(prod, name)).values():
            assert [(key, next(iter(item[key]))) for key, _ in keys] == keys


def test_a_job_that_does_not_wait_and_a_run_that_has_ended_are_in_no_watched_index() -> None:
    job = a_job()
    assert "next_run_at" not in job_to_item(job)
    assert "watch_key" not in run_to_item(a_run(job, deadline_at=None))


def test_indexes_project_only_what_seldom_changes(synthesised: Synthesised) -> None:
    projections = {
        index["IndexName"]: (
            index["Projection"]["ProjectionType"],
            index["Projection"].get("NonKeyAttributes"),
        )
        for name in ("Jobs", "Runs")
        for index in table(synthesised, name)["GlobalSecondaryIndexes"]
    }
    assert projections == {
        "waiting": ("KEYS_ONLY", None),
        "by_owner": ("INCLUDE", ["name", "status", "schedule_type", "priority", "tags", "last_outcome"]),
        "watch": (
            "INCLUDE",
            [
                "status",
                "owner",
                "executor_id",
                "priority",
                "due_at",
                "not_before",
                "generation",
                "put_off_at",
                "late_at",
            ],
        ),
    }


def test_only_runs_have_a_stream_and_it_shows_before_and_after(synthesised: Synthesised) -> None:
    assert table(synthesised, "Runs")["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert "StreamSpecification" not in table(synthesised, "Jobs")


def test_runs_and_records_can_expire_and_jobs_cannot(synthesised: Synthesised) -> None:
    ttl = {"AttributeName": "expires_at", "Enabled": True}
    assert table(synthesised, "Runs")["TimeToLiveSpecification"] == ttl
    assert table(synthesised, "Records")["TimeToLiveSpecification"] == ttl
    assert "TimeToLiveSpecification" not in table(synthesised, "Jobs")


def test_every_table_can_be_restored_to_any_second(synthesised: Synthesised) -> None:
    for properties in synthesised.all("AWS::DynamoDB::Table").values():
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert properties["BillingMode"] == "PAY_PER_REQUEST"


def test_data_outlives_the_stack_where_the_environment_says_so(synthesised: Synthesised) -> None:
    keep = synthesised.environment.settings.keep_data
    stateful = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")
    policies = {
        r["DeletionPolicy"] for r in synthesised.template["Resources"].values() if r["Type"] in stateful
    }
    assert policies == ({"Retain"} if keep else {"Delete"})
    for properties in synthesised.all("AWS::DynamoDB::Table").values():
        assert properties["DeletionProtectionEnabled"] is keep


def test_production_keeps_its_data(prod: Synthesised) -> None:
    assert prod.environment.settings.keep_data


def test_production_tables_and_indexes_are_warm_for_ten_thousand_jobs_a_second(prod: Synthesised) -> None:
    for properties in prod.all("AWS::DynamoDB::Table").values():
        for warmed in (properties, *properties.get("GlobalSecondaryIndexes", [])):
            assert warmed["WarmThroughput"]["WriteUnitsPerSecond"] >= 20_000


def test_the_bucket_is_private_encrypted_and_forgets(synthesised: Synthesised) -> None:
    _, bucket = synthesised.one("AWS::S3::Bucket", "Spill")
    retention = synthesised.environment.settings.retention
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "BucketEncryption" in bucket
    rules = {
        rule.get("Prefix"): rule.get("ExpirationInDays") for rule in bucket["LifecycleConfiguration"]["Rules"]
    }
    assert (rules["logs/"], rules["results/"]) == (retention.run_log_days, retention.run_result_days)


def test_the_signing_secret_is_generated_by_the_stack_and_kept_with_the_data(
    synthesised: Synthesised,
) -> None:
    name, secret = synthesised.one("AWS::SecretsManager::Secret", "SigningSecret")
    assert secret["GenerateSecretString"] == {"ExcludePunctuation": True, "PasswordLength": 64}
    assert "SecretString" not in secret
    kept = synthesised.environment.settings.keep_data
    assert synthesised.template["Resources"][name]["DeletionPolicy"] == ("Retain" if kept else "Delete")
