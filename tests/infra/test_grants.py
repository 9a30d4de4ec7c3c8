"""Who may do what: the whole of it, so that a grant which grows fails a test."""

import json
from pathlib import Path
from typing import Any

import pytest
from duetime.due_messages import Tick, parse_due_message

from infra.target_grants import ACTIONS
from tests.infra.conftest import BLOCKS, Synthesised, synthesise

PRIORITIES = ("High", "Medium", "Low")
CONSUME = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
READ_STREAM = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")


class Names:
    def __init__(self, synthesised: Synthesised) -> None:
        self._synthesised = synthesised
        self.jobs = self._name("AWS::DynamoDB::Table", "StorageJobs")
        self.runs = self._name("AWS::DynamoDB::Table", "StorageRuns")
        self.records = self._name("AWS::DynamoDB::Table", "StorageRecords")
        self.run_queues = [self._name("AWS::SQS::Queue", f"RunQueues{each}Queue") for each in PRIORITIES]
        self.dead_letters = [
            self._name("AWS::SQS::Queue", f"RunQueues{each}DeadLetters") for each in PRIORITIES
        ]
        self.failures = self._name("AWS::SQS::Queue", "StreamFailures")
        self.feed_failures = self._name("AWS::SQS::Queue", "FeedFailures")
        self.due = self._name("AWS::SQS::Queue", "DueQueue")
        self.notices = self._name("AWS::SQS::Queue", "NoticesQueue")
        self.due_dead_letters = self._name("AWS::SQS::Queue", "DueDeadLetters")

    def _name(self, kind: str, named: str) -> str:
        return self._synthesised.one(kind, named)[0]

    def log(self, function: str) -> set[tuple[str, str]]:
        group = self._name("AWS::Logs::LogGroup", function)
        return {(f"logs:{action}", f"{group}") for action in ("CreateLogStream", "PutLogEvents")}


def wakeups(synthesised: Synthesised) -> set[tuple[str, str]]:
    """What it takes to create a schedule: the schedule itself, and lending it its role."""
    group = synthesised.one("AWS::Scheduler::ScheduleGroup", "WakeUpsGroup")[1]["Name"]
    role = synthesised.one("AWS::IAM::Role", "WakeUpsRole")[0]
    granted = {("scheduler:CreateSchedule", f"schedule/{group}/*"), ("iam:PassRole", role)}
    # To the emulator's IAM every schedule is in the default group.
    default = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/*"
    return granted | ({("scheduler:CreateSchedule", default)} if synthesised.environment.is_local else set())


def sends(synthesised: Synthesised, queues: list[str]) -> set[tuple[str, str]]:
    # The emulator asks for batches by name; AWS has no such action.
    actions = ["SendMessage", *(["SendMessageBatch"] if synthesised.environment.is_local else [])]
    return {(f"sqs:{action}", queue) for action in actions for queue in queues}


def on_tables(actions: tuple[str, ...], *tables: str) -> set[tuple[str, str]]:
    return {(f"dynamodb:{action}", table) for action in actions for table in tables}


def objects(synthesised: Synthesised, *actions: str) -> set[tuple[str, str]]:
    bucket, _ = synthesised.one("AWS::S3::Bucket", "Spill")
    return {(f"s3:{action}", f"{bucket}/*") for action in actions}


def topics(synthesised: Synthesised, *actions: str) -> set[tuple[str, str]]:
    """The owners' topics, which are made when they are needed."""
    name = f"duetime-{synthesised.environment.name}-notices-*"
    return {(f"sns:{action}", name) for action in actions}


def signing(synthesised: Synthesised) -> set[tuple[str, str]]:
    secret, _ = synthesised.one("AWS::SecretsManager::Secret", "SigningSecret")
    return {("secretsmanager:GetSecretValue", f"{secret}.Id")}


def targets(synthesised: Synthesised) -> set[tuple[str, str]]:
    """The ARNs that the environment allows, each with what a task does there."""
    arns = {arn for rule in synthesised.environment.settings.allowed_targets for arn in rule.arns}
    tagged = {
        ("ecs:TagResource", f"{arn.replace('cluster/', 'task/')}/*") for arn in arns if ":cluster/" in arn
    }
    return {(action, arn) for arn in arns for action in ACTIONS[arn.split(":")[2]]} | tagged


def looking_after(synthesised: Synthesised) -> set[tuple[str, str]]:
    if not synthesised.environment.is_local:
        return set()
    here = "us-east-1:000000000000"
    # The emulator asks about the cluster instead of the task.
    tasks = [f"arn:aws:ecs:{here}:task/demo-*/*", f"arn:aws:ecs:{here}:cluster/demo-*"]
    execution = f"arn:aws:states:{here}:execution:demo-*:*"
    return (
        {(f"ecs:{action}", task) for action in ("DescribeTasks", "StopTask") for task in tasks}
        | {("ecs:ListTasks", tasks[1])}
        | {(f"states:{action}", execution) for action in ("DescribeExecution", "StopExecution")}
    )


def statements(synthesised: Synthesised, role: str, action: str) -> list[dict[str, Any]]:
    return [
        statement
        for policy in synthesised.all("AWS::IAM::Policy").values()
        if any(attached["Ref"].startswith(role) for attached in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
        if action in (statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]])
    ]


@pytest.fixture(scope="module")
def reaching() -> Synthesised:
    """An account of AWS where tasks may reach a little of everything."""
    here = "eu-west-1:123456789012"
    arns = [
        f"arn:aws:ecs:{here}:cluster/pay",
        f"arn:aws:ecs:{here}:task-definition/pay-*",
        f"arn:aws:states:{here}:stateMachine:pay:live",
        f"arn:aws:states:{here}:stateMachine:ads-*",
        f"arn:aws:kms:{here}:key/1234abcd",
    ]
    rule = {"principals": ["*"], "http_private_addresses": [], "python": [], "arns": arns}
    return synthesise("prod", blocks=BLOCKS | {"prod": BLOCKS["prod"] | {"allowed_targets": [rule]}})


class TestWhatTasksStart:
    CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/pay"
    CONTAINERS = "arn:aws:ecs:eu-west-1:123456789012:task/pay/*"

    def test_a_container_may_be_tagged_as_it_is_started_and_only_then(self, reaching: Synthesised) -> None:
        (statement,) = statements(reaching, "WorkerRole", "ecs:TagResource")
        assert (statement["Resource"], statement["Condition"]) == (
            self.CONTAINERS,
            {"StringEquals": {"ecs:CreateAction": "RunTask"}},
        )

    def test_the_watcher_finds_containers_in_their_clusters_and_nowhere_else(
        self, reaching: Synthesised
    ) -> None:
        (statement,) = statements(reaching, "WatcherRole", "ecs:ListTasks")
        assert (statement["Resource"], statement["Condition"]) == (
            "*",
            {"ArnLike": {"ecs:cluster": [self.CLUSTER]}},
        )
        (statement,) = statements(reaching, "WatcherRole", "ecs:StopTask")
        assert statement["Resource"] == self.CONTAINERS

    def test_executions_belong_to_the_state_machine_and_not_to_its_alias(self, reaching: Synthesised) -> None:
        (statement,) = statements(reaching, "WatcherRole", "states:StopExecution")
        here = "arn:aws:states:eu-west-1:123456789012:execution"
        assert statement["Resource"] == [f"{here}:ads-*:*", f"{here}:pay:*"]

    def test_a_key_is_used_for_what_tasks_reach_and_never_by_itself(self, reaching: Synthesised) -> None:
        (statement,) = statements(reaching, "WorkerRole", "kms:Decrypt")
        assert statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
        assert statement["Resource"] == "arn:aws:kms:eu-west-1:123456789012:key/1234abcd"
        services = statement["Condition"]["StringLike"]["kms:ViaService"]
        assert services == [f"{each}.*.amazonaws.com" for each in ("secretsmanager", "ssm", "sns", "sqs")]

    def test_nag_has_nothing_to_say(self, reaching: Synthesised) -> None:
        assert reaching.nag_findings == []


def test_job_service_writes_jobs_and_runs_and_sets_wake_ups(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("JobServiceRole") == (
        names.log("JobService")
        | on_tables(("PutItem", "GetItem", "BatchGetItem", "UpdateItem"), names.jobs, names.runs)
        | on_tables(("Query",), names.runs, f"{names.runs}/index/watch", f"{names.jobs}/index/by_owner")
        | on_tables(("PutItem", "GetItem", "Query", "DeleteItem"), names.records)
        | topics(synthesised, "CreateTopic", "Subscribe", "Unsubscribe")
        # To the emulator's IAM a subscription is not its topic's.
        | ({("sns:Unsubscribe", "*")} if synthesised.environment.is_local else set())
        | sends(synthesised, [names.notices])
        | objects(synthesised, "PutObject", "GetObject")
        | signing(synthesised)
        | wakeups(synthesised)
    )


def test_job_search_only_reads(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("JobSearchRole") == (
        names.log("JobSearch")
        | on_tables(("GetItem", "BatchGetItem"), names.jobs, names.runs)
        | on_tables(("Query",), names.runs, f"{names.runs}/index/watch", names.records)
        | on_tables(("Query",), f"{names.jobs}/index/by_owner", f"{names.jobs}/index/waiting")
        | objects(synthesised, "GetObject")
        | signing(synthesised)
    )


def test_the_enqueuer_reads_the_stream_tells_the_queues_and_marks_runs(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("EnqueuerRole") == (
        names.log("Enqueuer")
        | {("dynamodb:UpdateItem", names.runs), ("sqs:SendMessage", names.failures)}
        | on_tables(READ_STREAM, f"{names.runs}.StreamArn")
        | sends(synthesised, [*names.run_queues, *names.dead_letters, names.due])
    )


def test_the_status_feed_reads_the_stream_and_announces_what_somebody_wants_to_hear(
    synthesised: Synthesised,
) -> None:
    names = Names(synthesised)
    assert synthesised.grants("StatusFeedRole") == (
        names.log("StatusFeed")
        | {("sqs:SendMessage", names.feed_failures)}
        | on_tables(READ_STREAM, f"{names.runs}.StreamArn")
        | on_tables(("Query",), names.records)
        | sends(synthesised, [names.notices])
    )


def test_the_watcher_finds_plans_rescues_and_tells_the_queues(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    emulator = {("dynamodb:BatchExecuteStatement", "*")} if synthesised.environment.is_local else set()
    assert synthesised.grants("WatcherRole") == (
        names.log("Watcher")
        | on_tables(("Query",), f"{names.jobs}/index/waiting", f"{names.runs}/index/watch", names.runs)
        | on_tables(("BatchGetItem", "UpdateItem"), names.jobs, names.runs)
        | on_tables(("PartiQLUpdate",), names.jobs)
        | on_tables(("PutItem",), names.runs, names.records)
        | on_tables(("Query",), names.records)
        | {(f"sqs:{action}", names.due) for action in CONSUME}
        | {("sqs:GetQueueAttributes", queue) for queue in names.run_queues}
        | {
            (f"sqs:{each}", queue)
            for each in ("ReceiveMessage", "DeleteMessage")
            for queue in names.dead_letters
        }
        | sends(synthesised, [*names.run_queues, *names.dead_letters, names.due, names.notices])
        | objects(synthesised, "PutObject")
        | wakeups(synthesised)
        | looking_after(synthesised)
        | emulator
    )


def test_the_worker_updates_what_exists_and_reaches_what_tasks_may_reach(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    assert synthesised.grants("WorkerRole") == (
        names.log("Worker")
        | on_tables(("GetItem", "BatchGetItem", "UpdateItem"), names.jobs, names.runs)
        | on_tables(("Query",), names.runs)
        | on_tables(("PutItem",), names.records)
        | {(f"sqs:{action}", queue) for action in CONSUME for queue in names.run_queues}
        | objects(synthesised, "PutObject")
        | targets(synthesised)
    )


def test_the_notifier_reads_subscriptions_counts_storms_and_tells(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    direct = {
        grant for grant in targets(synthesised) if grant[0] in ("sqs:SendMessage", "lambda:InvokeFunction")
    }
    assert synthesised.grants("NotifierRole") == (
        names.log("Notifier")
        | on_tables(("BatchGetItem",), names.jobs)
        | on_tables(("Query", "GetItem", "PutItem"), names.records)
        | {(f"sqs:{action}", names.notices) for action in CONSUME}
        | sends(synthesised, [names.notices])
        | topics(synthesised, "Publish")
        | signing(synthesised)
        | direct
    )


def test_a_worker_may_lend_roles_only_to_containers() -> None:
    local = synthesise("local")
    lending = [
        statement
        for policy in local.all("AWS::IAM::Policy").values()
        if any(attached["Ref"].startswith("WorkerRole") for attached in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "iam:PassRole"
    ]
    assert [each["Condition"] for each in lending] == [
        {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    ]


def test_only_the_rules_of_this_stack_report_to_the_due_queue() -> None:
    local = synthesise("local")
    due, _ = local.one("AWS::SQS::Queue", "DueQueue")
    rules = local.all("AWS::Events::Rule")
    assert {rule["EventPattern"]["source"][0] for rule in rules.values()} == {"aws.ecs", "aws.states"}
    for rule in rules.values():
        assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": [due, "Arn"]}]
    allowed = {
        statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0]
        for policy in local.all("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    }
    assert allowed == set(rules)


def test_where_no_task_may_start_anything_nothing_is_listened_to(prod: Synthesised) -> None:
    assert prod.all("AWS::Events::Rule") == {}


@pytest.mark.parametrize("role", ["JobServiceRole", "WatcherRole"])
def test_a_schedules_role_can_be_lent_to_the_scheduler_and_to_nobody_else(
    synthesised: Synthesised, role: str
) -> None:
    """The emulator does not ask for iam:PassRole at all."""
    lending = [
        statement
        for policy in synthesised.all("AWS::IAM::Policy").values()
        if any(attached["Ref"].startswith(role) for attached in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "iam:PassRole"
    ]
    assert [each["Condition"] for each in lending] == [
        {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    ]


def test_schedules_may_only_send_to_the_due_queue_and_its_dead_letters(synthesised: Synthesised) -> None:
    names = Names(synthesised)
    queues = {names.due, names.due_dead_letters}
    assert synthesised.grants("WakeUpsRole") == {("sqs:SendMessage", queue) for queue in queues}


def test_the_backstop_ticks_every_quarter_of_an_hour(synthesised: Synthesised) -> None:
    """What all else missed is found by this one schedule, the only one that is always there."""
    names = Names(synthesised)
    ((_, schedule),) = synthesised.all("AWS::Scheduler::Schedule").items()
    assert (schedule["ScheduleExpression"], schedule["FlexibleTimeWindow"]) == (
        "rate(15 minutes)",
        {"Mode": "OFF"},
    )
    assert schedule["Target"]["Arn"] == {"Fn::GetAtt": [names.due, "Arn"]}
    assert parse_due_message(schedule["Target"]["Input"]) == Tick(is_thorough=True)
    role = synthesised.one("AWS::IAM::Role", "WakeUpsRole")[0]
    assert schedule["Target"]["RoleArn"] == {"Fn::GetAtt": [role, "Arn"]}


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
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}
    documented = {
        f"{method.upper()} {path}"
        for path, methods in json.loads(OPENAPI.read_text())["paths"].items()
        for method in methods
    }
    assert {route["RouteKey"] for route in routes} == documented


def test_the_stage_is_throttled_and_logged(synthesised: Synthesised) -> None:
    (stage,) = synthesised.all("AWS::ApiGatewayV2::Stage").values()
    limits = synthesised.environment.settings.api
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingBurstLimit": limits.burst,
        "ThrottlingRateLimit": limits.requests_per_second,
    }
    assert stage.get("RouteSettings", {}) == {
        each.route: {
            "ThrottlingBurstLimit": each.burst,
            "ThrottlingRateLimit": each.requests_per_second,
        }
        for each in limits.routes
    }
    assert "DestinationArn" in stage["AccessLogSettings"]


def test_the_stage_comes_after_the_routes_that_it_limits(synthesised: Synthesised) -> None:
    """Else CloudFormation may ask for the limit of a route that does not exist yet, which API Gateway refuses."""
    resources = synthesised.template["Resources"]
    (stage,) = (each for each in resources.values() if each["Type"] == "AWS::ApiGatewayV2::Stage")
    routes = {name for name, each in resources.items() if each["Type"] == "AWS::ApiGatewayV2::Route"}
    assert routes <= set(stage["DependsOn"])


OPENAPI = Path(__file__).parents[2] / "functions" / "job_search" / "openapi.json"
READS = {
    "GET/jobs",
    "GET/jobs/*",
    "GET/executions",
    "GET/subscriptions",
    "GET/dead-letters",
    "GET/health",
    "GET/openapi.json",
    "POST/schedules/preview",
}
WRITES = {"POST/jobs", "POST/jobs/*", "PUT/jobs/*", "DELETE/jobs/*", "POST/dead-letters/redrive"} | {
    "POST/subscriptions",
    "DELETE/subscriptions/*",
}
REPORTS = {f"POST/jobs/*/runs/*/{verb}" for verb in ("heartbeat", "complete", "fail")}


@pytest.mark.parametrize(
    ("policy", "paths"),
    [
        ("AdminPolicy", {"*/*"}),
        ("OperatorPolicy", WRITES | READS),
        ("ViewerPolicy", READS),
        ("ReporterPolicy", REPORTS),
    ],
)
def test_a_policy_allows_these_routes_and_no_others(
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
        "AdminPolicyArn",
        "OperatorPolicyArn",
        "ViewerPolicyArn",
        "ReporterPolicyArn",
        "RecordsTableName",
        "SpillBucketName",
        "WorkerFunctionName",
        "WatcherFunctionName",
        "DueQueueUrl",
        "AlarmTopicArn",
        "NoticesQueueUrl",
        "SigningSecretArn",
        "ScheduleGroupName",
        "RunQueueUrlHigh",
        "RunQueueUrlMedium",
        "RunQueueUrlLow",
    }
