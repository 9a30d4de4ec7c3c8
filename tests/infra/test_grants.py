"""Who may do what: the whole of it, so that a grant which grows fails a test."""

import pytest

from tests.infra.conftest import Synthesised

PRIORITIES = ("High", "Medium", "Low")
CONSUME = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
READ_STREAM = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")


class Names:
    def __init__(self, synthesised: Synthesised) -> None:
        self._synthesised = synthesised
        self.jobs = self._name("AWS::DynamoDB::Table", "StorageJobs")
        self.runs = self._name("AWS::DynamoDB::Table", "StorageRuns")
        self.run_queues = [self._name("AWS::SQS::Queue", f"RunQueues{each}Queue") for each in PRIORITIES]
        self.dead_letters = [
            self._name("AWS::SQS::Queue", f"RunQueues{each}DeadLetters") for each in PRIORITIES
        ]
        self.failures = self._name("AWS::SQS::Queue", "StreamFailures")
        self.due = self._name("AWS::SQS::Queue", "DueQueue")

    def _name(self, kind: str, named: str) -> str:
        return self._synthesised.one(kind, named)[0]

    def log(self, function: str) -> set[tuple[str, str]]:
        group = self._name("AWS::Logs::LogGroup", function)
        return {(f"logs:{action}", f"{group}") for action in ("CreateLogStream", "PutLogEvents")}


def test_job_service_creates_and_reads_jobs_and_creates_runs(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("JobServiceRole") == names.log("JobService") | {
        ("dynamodb:PutItem", names.jobs),
        ("dynamodb:GetItem", names.jobs),
        ("dynamodb:PutItem", names.runs),
    }


def test_job_search_only_reads(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("JobSearchRole") == names.log("JobSearch") | {
        ("dynamodb:GetItem", names.jobs),
        ("dynamodb:GetItem", names.runs),
        ("dynamodb:Query", names.runs),
    }


def test_the_enqueuer_reads_the_stream_tells_the_queues_and_marks_runs(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    # The emulator asks for this by name; AWS has no such action.
    sends = ["SendMessage", *(["SendMessageBatch"] if synthesised.environment.is_local else [])]
    assert synthesised.grants("EnqueuerRole") == (
        names.log("Enqueuer")
        | {("dynamodb:UpdateItem", names.runs), ("sqs:SendMessage", names.failures)}
        | {(f"dynamodb:{action}", f"{names.runs}.StreamArn") for action in READ_STREAM}
        | {(f"sqs:{send}", queue) for send in sends for queue in [*names.run_queues, *names.dead_letters]}
    )


def test_the_worker_reads_and_updates_what_exists_and_creates_nothing(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("WorkerRole") == (
        names.log("Worker")
        | {
            (f"dynamodb:{action}", table)
            for action in ("GetItem", "BatchGetItem", "UpdateItem")
            for table in (names.jobs, names.runs)
        }
        | {(f"sqs:{action}", queue) for action in CONSUME for queue in names.run_queues}
    )


def test_schedules_may_only_send_to_the_due_queue(synthesised: Synthesised) -> None:
    assert synthesised.grants("WakeUpsRole") == {("sqs:SendMessage", Names(synthesised).due)}


def test_only_schedules_of_this_group_can_act_as_the_schedules_role(synthesised: Synthesised) -> None:
    _, role = synthesised.one("AWS::IAM::Role", "WakeUpsRole")
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "scheduler.amazonaws.com"}
    group, _ = synthesised.one("AWS::Scheduler::ScheduleGroup", "WakeUpsGroup")
    assert statement["Condition"] == {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": [group, "Arn"]},
        }
    }


def test_no_role_has_a_policy_that_is_not_its_own(synthesised: Synthesised) -> None:
    for role in synthesised.all("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        assert "Policies" not in role


def test_every_route_demands_a_signature(synthesised: Synthesised) -> None:
    routes = synthesised.all("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"]: route["AuthorizationType"] for route in routes} == {
        "POST /jobs": "AWS_IAM",
        "GET /jobs/{job_id}": "AWS_IAM",
        "GET /jobs/{job_id}/status": "AWS_IAM",
        "GET /jobs/{job_id}/runs": "AWS_IAM",
    }


def test_the_stage_is_throttled_and_logged(synthesised: Synthesised) -> None:
    (stage,) = synthesised.all("AWS::ApiGatewayV2::Stage").values()
    limits = synthesised.environment.settings.api
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingBurstLimit": limits.burst,
        "ThrottlingRateLimit": limits.requests_per_second,
    }
    assert "DestinationArn" in stage["AccessLogSettings"]


@pytest.mark.parametrize(
    ("policy", "paths"),
    [("OperatorPolicy", {"POST/jobs", "GET/jobs/*"}), ("ViewerPolicy", {"GET/jobs/*"})],
)
def test_a_managed_policy_opens_these_routes_only(
    synthesised: Synthesised, policy: str, paths: set[str]
) -> None:
    _, properties = synthesised.one("AWS::IAM::ManagedPolicy", policy)
    (statement,) = properties["PolicyDocument"]["Statement"]
    resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")
    assert {each["Fn::Join"][1][-1].split("$default/")[1] for each in resources} == paths


def test_the_outputs_are_what_tools_read(synthesised: Synthesised) -> None:
    assert set(synthesised.template["Outputs"]) == {
        "ApiUrl",
        "ApiId",
        "Region",
        "JobsTableName",
        "RunsTableName",
        "OperatorPolicyArn",
        "ViewerPolicyArn",
        "WorkerFunctionName",
        "RunQueueUrlHigh",
        "RunQueueUrlMedium",
        "RunQueueUrlLow",
    }
