"""The tasks that call AWS. What a call looks like and what its answers mean is tried on stand-ins for the clients,
which fail as AWS does; that the calls themselves are right, on moto here and end to end in the emulator."""

import base64
import io
import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from duetime import supervision
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.run import RunKey
from duetime.stopping import Stopped, StopReason
from duetime.tasks import Accepted, parse_task
from duetime.tasks import aws as aws_module
from duetime.tasks.ecs import EcsTask
from duetime.tasks.ecs import finding_of as ecs_finding
from duetime.tasks.interface import Failed, StillRunning, Succeeded
from duetime.tasks.states import StatesTask
from duetime.tasks.states import finding_of as states_finding
from duetime.tasks.work_names import execution_name, parse_execution_name, parse_started_by, started_by

from tests.tasks.conftest import ACCOUNT, a_context, attempt, attempt_and_stop

HERE = f"us-east-1:{ACCOUNT}"
LAMBDA: dict[str, Any] = {"type": "lambda", "function_arn": f"arn:aws:lambda:{HERE}:function:demo"}
SQS: dict[str, Any] = {"type": "sqs", "queue_arn": f"arn:aws:sqs:{HERE}:demo"}
SNS: dict[str, Any] = {"type": "sns", "topic_arn": f"arn:aws:sns:{HERE}:demo"}
EVENTS: dict[str, Any] = {"type": "events", "event_bus_arn": f"arn:aws:events:{HERE}:event-bus/demo"}
STATES: dict[str, Any] = {"type": "states", "state_machine_arn": f"arn:aws:states:{HERE}:stateMachine:demo"}
ECS: dict[str, Any] = {
    "type": "ecs",
    "cluster_arn": f"arn:aws:ecs:{HERE}:cluster/demo",
    "task_definition_arn": f"arn:aws:ecs:{HERE}:task-definition/demo:3",
    "subnets": ["subnet-1"],
    "container": "main",
}
OPERATIONS = {
    "lambda": (LAMBDA, "invoke"),
    "sqs": (SQS, "send_message"),
    "sns": (SNS, "publish"),
    "events": (EVENTS, "put_events"),
    "states": (STATES, "start_execution"),
    "ecs": (ECS, "run_task"),
}
KEY = RunKey("3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11", "20261118T070000123Z-1-3f1f7c529d5c4a44")


class StandIn:
    """A client whose every operation does as the test says."""

    class meta:  # noqa: N801
        endpoint_url = "https://sqs.example.com"

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._answer = answer

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            self.calls.append((operation, parameters))
            return self._answer(**parameters)

        return call


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], StandIn]:
    def install(answer: Callable[..., Any]) -> StandIn:
        found = StandIn(answer)
        for module in ("lambda_function", "sqs", "sns", "events", "states", "ecs"):
            monkeypatch.setattr(f"duetime.tasks.{module}.client", lambda *_, **__: found)
        return found

    return install


Install = Callable[[Callable[..., Any]], StandIn]


def refusing(code: str, status: int = 400) -> Callable[..., Any]:
    def refuse(**_: Any) -> Any:
        response: Any = {
            "Error": {"Code": code, "Message": "said AWS"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        raise ClientError(response, "Anything")

    return refuse


class TestEveryKind:
    @pytest.mark.parametrize("kind", OPERATIONS)
    @pytest.mark.parametrize(
        "code", ["ThrottlingException", "TooManyRequestsException", "ServiceUnavailable"]
    )
    def test_a_throttle_or_an_outage_is_transient(self, stand_in: Install, kind: str, code: str) -> None:
        stand_in(refusing(code))
        with pytest.raises(TransientFailure, match=f"{code}: said AWS"):
            attempt(OPERATIONS[kind][0])

    @pytest.mark.parametrize("kind", OPERATIONS)
    def test_a_failure_of_the_service_itself_is_transient(self, stand_in: Install, kind: str) -> None:
        stand_in(refusing("SomethingNew", 503))
        with pytest.raises(TransientFailure):
            attempt(OPERATIONS[kind][0])

    @pytest.mark.parametrize("kind", OPERATIONS)
    @pytest.mark.parametrize(
        "code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"]
    )
    def test_what_would_be_refused_again_is_permanent(self, stand_in: Install, kind: str, code: str) -> None:
        stand_in(refusing(code))
        with pytest.raises(PermanentFailure, match=f"{code}: said AWS"):
            attempt(OPERATIONS[kind][0])

    @pytest.mark.parametrize("kind", OPERATIONS)
    def test_no_answer_in_time_is_transient(self, stand_in: Install, kind: str) -> None:
        def silent(**_: Any) -> Any:
            raise ReadTimeoutError(endpoint_url="https://aws.example.com")

        stand_in(silent)
        with pytest.raises(TransientFailure, match="ReadTimeoutError"):
            attempt(OPERATIONS[kind][0])

    @pytest.mark.parametrize("kind", OPERATIONS)
    @pytest.mark.parametrize("reason", [StopReason.CANCELLED, StopReason.TIMED_OUT])
    def test_a_call_that_hangs_is_left_behind_when_the_attempt_is_stopped(
        self, stand_in: Install, kind: str, reason: StopReason, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(supervision, "GRACE_SECONDS", 0.05)
        reached, release = threading.Event(), threading.Event()

        def hang(**_: Any) -> Any:
            reached.set()
            release.wait(10)
            raise AssertionError("nobody hears this")

        stand_in(hang)
        with pytest.raises(Stopped) as stopped:
            attempt_and_stop(a_context(OPERATIONS[kind][0], seconds=30), reached, reason)
        release.set()
        assert stopped.value.reason is reason

    @pytest.mark.parametrize("kind", OPERATIONS)
    def test_what_is_not_listed_for_the_owner_is_not_called(self, stand_in: Install, kind: str) -> None:
        client = stand_in(lambda **_: {})
        settings = {
            name: value.replace(ACCOUNT, "999999999999") if isinstance(value, str) else value
            for name, value in OPERATIONS[kind][0].items()
        }
        with pytest.raises(PermanentFailure, match="is not listed for"):
            attempt(settings)
        assert client.calls == []

    @pytest.mark.parametrize("kind", OPERATIONS)
    def test_an_unknown_setting_is_refused_by_its_name(self, kind: str) -> None:
        with pytest.raises(InvalidField, match="is not a setting of this task") as refused:
            parse_task(OPERATIONS[kind][0] | {"colour": "red"})
        assert refused.value.field == "task.colour"

    @pytest.mark.parametrize("kind", OPERATIONS)
    def test_an_arn_of_something_else_is_refused_by_its_name(self, kind: str) -> None:
        settings, _ = OPERATIONS[kind]
        for name in (name for name in settings if name.endswith("_arn")):
            for value in ("nonsense", 7, "arn:aws:iam::1:role/x"):
                with pytest.raises(InvalidField) as refused:
                    parse_task(settings | {name: value})
                assert refused.value.field == f"task.{name}"

    def test_a_client_tries_once(self) -> None:
        config = aws_module.client("sqs", "us-east-1").meta.config
        assert config.retries["total_max_attempts"] == 1


class TestLambda:
    def answering(self, payload: bytes, **more: Any) -> Callable[..., Any]:
        return lambda **_: {"StatusCode": 200, "Payload": io.BytesIO(payload), **more}

    def test_a_function_is_called_with_the_payload_and_what_every_attempt_receives(
        self, stand_in: Install
    ) -> None:
        client = stand_in(
            self.answering(b'{"paid": 3}', LogResult=base64.b64encode(b"line 1\nline 2").decode())
        )
        lines: list[str] = []
        result = attempt(LAMBDA, {"batch": "eu"}, log=lines.append)
        assert (result, lines) == ({"paid": 3}, ["line 1\nline 2"])
        ((_, sent),) = client.calls
        assert (sent["InvocationType"], sent["LogType"]) == ("RequestResponse", "Tail")
        message = json.loads(sent["Payload"])
        assert message["payload"] == {"batch": "eu"}
        assert (message["duetime"]["fence"], message["duetime"]["attempt"]) == (7, 2)

    def test_an_event_is_not_waited_for(self, stand_in: Install) -> None:
        client = stand_in(self.answering(b""))
        assert attempt(LAMBDA | {"invocation": "event"}) == {"status_code": 200}
        assert client.calls[0][1]["InvocationType"] == "Event"

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ({"errorType": "ValueError", "errorMessage": "no"}, TransientFailure),
            ({"errorType": "payouts.PermanentFailure", "errorMessage": "no"}, PermanentFailure),
            ("just text", TransientFailure),
        ],
    )
    def test_a_functions_own_error_is_told_apart(
        self, stand_in: Install, error: Any, kind: type[Exception]
    ) -> None:
        stand_in(self.answering(json.dumps(error).encode(), FunctionError="Unhandled"))
        with pytest.raises(kind, match="the function failed"):
            attempt(LAMBDA)


class TestMessages:
    def test_sqs_sends_the_payload_and_what_every_attempt_receives(self, aws: Any) -> None:
        sqs = aws("sqs")
        url = sqs.create_queue(QueueName="demo")["QueueUrl"]
        assert "message_id" in attempt(SQS, {"batch": "eu"})
        (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
        body = json.loads(message["Body"])
        assert (body["payload"], body["duetime"]["idempotency_key"]) == ({"batch": "eu"}, KEY.run_id)

    def test_a_fifo_queue_gets_each_run_once(self, aws: Any) -> None:
        sqs = aws("sqs")
        url = sqs.create_queue(QueueName="demo.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        for _ in range(2):
            attempt(SQS | {"queue_arn": f"arn:aws:sqs:{HERE}:demo.fifo"})
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        assert len(received) == 1

    def test_an_input_of_the_tasks_own_replaces_the_payload(self, aws: Any) -> None:
        sqs = aws("sqs")
        url = sqs.create_queue(QueueName="demo")["QueueUrl"]
        attempt(SQS | {"input": [1]}, {"batch": "eu"})
        (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
        assert json.loads(message["Body"])["payload"] == [1]

    def test_sns_publishes(self, aws: Any) -> None:
        aws("sns").create_topic(Name="demo")
        assert "message_id" in attempt(SNS | {"subject": "Payout"}, {"batch": "eu"})

    def test_events_puts_an_event_on_the_bus(self, aws: Any) -> None:
        aws("events").create_event_bus(Name="demo")
        assert "event_id" in attempt(EVENTS, {"batch": "eu"})

    @pytest.mark.parametrize(
        ("code", "kind"), [("ThrottlingException", TransientFailure), ("NotAuthorized", PermanentFailure)]
    )
    def test_an_event_that_was_refused_by_itself_is_a_failure(
        self, stand_in: Install, code: str, kind: type[Exception]
    ) -> None:
        stand_in(lambda **_: {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "no"}]})
        with pytest.raises(kind, match=code):
            attempt(EVENTS)

    def test_an_event_does_not_pretend_to_be_from_aws(self) -> None:
        with pytest.raises(InvalidField, match=r"task\.source"):
            parse_task(EVENTS | {"source": "aws.ec2"})


class TestStates:
    def test_an_execution_is_started_under_a_name_that_leads_back_to_the_run(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {"executionArn": "arn:execution"})
        accepted = attempt(STATES, {"batch": "eu"})
        assert isinstance(accepted, Accepted)
        assert accepted.handle == {"type": "states", "execution_arn": "arn:execution", "region": "us-east-1"}
        ((_, sent),) = client.calls
        assert parse_execution_name(sent["name"]) == (KEY, 2)
        assert json.loads(sent["input"])["payload"] == {"batch": "eu"}

    def test_it_need_not_be_waited_for(self, stand_in: Install) -> None:
        stand_in(lambda **_: {"executionArn": "arn:execution"})
        assert attempt(STATES | {"wait": False}) == {"execution_arn": "arn:execution"}

    @pytest.mark.parametrize(
        ("status", "finding"),
        [
            ("RUNNING", StillRunning()),
            ("SUCCEEDED", Succeeded({"paid": 3})),
            ("FAILED", Failed("the execution ended FAILED: Boom: it broke")),
            ("TIMED_OUT", Failed("the execution ended TIMED_OUT: Boom: it broke")),
            ("ABORTED", Failed("the execution ended ABORTED: Boom: it broke")),
        ],
    )
    def test_what_became_of_it_is_asked_for(self, stand_in: Install, status: str, finding: object) -> None:
        told = {"status": status, "output": '{"paid": 3}', "error": "Boom", "cause": "it broke"}
        stand_in(lambda **_: told)
        assert StatesTask.look({"execution_arn": "arn:execution", "region": "us-east-1"}) == finding

    def test_an_execution_that_is_gone_has_failed(self, stand_in: Install) -> None:
        stand_in(refusing("ExecutionDoesNotExist"))
        finding = StatesTask.look({"execution_arn": "arn:execution", "region": "us-east-1"})
        assert isinstance(finding, Failed)

    def test_one_that_may_not_be_looked_at_is_not_taken_for_gone(self, stand_in: Install) -> None:
        """Otherwise a second one would be started beside it."""
        stand_in(refusing("AccessDeniedException"))
        with pytest.raises(PermanentFailure, match="AccessDenied"):
            StatesTask.look({"execution_arn": "arn:execution", "region": "us-east-1"})
        with pytest.raises(PermanentFailure, match="AccessDenied"):
            StatesTask.find(STATES, KEY, 2)

    @pytest.mark.parametrize("qualifier", ["", ":live", ":7"])
    def test_one_whose_worker_died_is_found_by_its_name(self, stand_in: Install, qualifier: str) -> None:
        client = stand_in(lambda **_: {"status": "RUNNING"})
        settings = STATES | {"state_machine_arn": STATES["state_machine_arn"] + qualifier}
        handle = StatesTask.find(settings, KEY, 2)
        arn = f"arn:aws:states:{HERE}:execution:demo:{execution_name(KEY, 2)}"
        assert handle == {"type": "states", "execution_arn": arn, "region": "us-east-1"}
        assert client.calls == [("describe_execution", {"executionArn": arn})]

    def test_one_that_was_never_started_is_not_found(self, stand_in: Install) -> None:
        stand_in(refusing("ExecutionDoesNotExist"))
        assert StatesTask.find(STATES, KEY, 2) is None

    def test_one_that_need_not_be_waited_for_is_not_looked_for(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {"status": "RUNNING"})
        assert StatesTask.find(STATES | {"wait": False}, KEY, 2) is None
        assert client.calls == []

    def test_an_express_execution_cannot_be_waited_for(self, stand_in: Install) -> None:
        stand_in(lambda **_: {"executionArn": f"arn:aws:states:{HERE}:express:demo:n:id"})
        with pytest.raises(PermanentFailure, match="set the task's wait to false"):
            attempt(STATES)
        assert "execution_arn" in attempt(STATES | {"wait": False})

    def test_one_that_has_ended_need_not_be_stopped_but_a_refusal_is_told(self, stand_in: Install) -> None:
        handle = {"execution_arn": "arn:execution", "region": "us-east-1"}
        stand_in(refusing("ExecutionDoesNotExist"))
        StatesTask.end(handle, "cancelled")
        stand_in(refusing("AccessDeniedException"))
        with pytest.raises(PermanentFailure):
            StatesTask.end(handle, "cancelled")

    def test_it_is_really_stopped(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {})
        StatesTask.end({"execution_arn": "arn:execution", "region": "us-east-1"}, "cancelled")
        assert client.calls == [("stop_execution", {"executionArn": "arn:execution", "cause": "cancelled"})]

    def test_an_output_that_is_not_json_is_kept_as_text(self) -> None:
        assert states_finding("SUCCEEDED", "plain", None, None) == Succeeded("plain")


class TestEcs:
    HANDLE: ClassVar[dict[str, Any]] = {
        "type": "ecs",
        "cluster_arn": "arn:cluster",
        "task_arn": "arn:task",
        "region": "us-east-1",
        "container": "main",
        "completion": "exit",
    }

    def test_a_container_is_started_with_what_the_job_asks_for(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {"tasks": [{"taskArn": "arn:task"}], "failures": []})
        settings = ECS | {
            "cpu": 1024,
            "memory": 2048,
            "command": ["python", "-m", "payout"],
            "environment": {"STAGE": "prod"},
            "security_groups": ["sg-1"],
            "assign_public_ip": True,
        }
        accepted = attempt(settings, {"batch": "eu"})
        assert isinstance(accepted, Accepted)
        assert accepted.handle == self.HANDLE | {"cluster_arn": ECS["cluster_arn"]}
        ((_, sent),) = client.calls
        assert sent["launchType"] == "FARGATE"
        assert parse_started_by(sent["startedBy"]) == (KEY, 2)
        assert len(sent["clientToken"]) <= 64
        assert sent["networkConfiguration"]["awsvpcConfiguration"] == {
            "subnets": ["subnet-1"],
            "securityGroups": ["sg-1"],
            "assignPublicIp": "ENABLED",
        }
        overrides = sent["overrides"]
        assert (overrides["cpu"], overrides["memory"]) == ("1024", "2048")
        (container,) = overrides["containerOverrides"]
        assert container["command"] == ["python", "-m", "payout"]
        variables = {each["name"]: each["value"] for each in container["environment"]}
        assert variables["STAGE"] == "prod"
        assert json.loads(variables["DUETIME"])["fence"] == 7
        assert json.loads(variables["DUETIME_PAYLOAD"]) == {"batch": "eu"}

    def test_one_whose_worker_died_is_found_by_who_started_it(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {"taskArns": ["arn:task"]})
        assert EcsTask.find(ECS, KEY, 2) == self.HANDLE | {"cluster_arn": ECS["cluster_arn"]}
        sought = {"cluster": ECS["cluster_arn"], "startedBy": started_by(KEY, 2)}
        assert client.calls == [("list_tasks", sought)]

    def test_one_that_was_never_started_is_not_found(self, stand_in: Install) -> None:
        stand_in(lambda **_: {"taskArns": []})
        assert EcsTask.find(ECS, KEY, 2) is None

    def test_no_capacity_is_transient(self, stand_in: Install) -> None:
        stand_in(lambda **_: {"tasks": [], "failures": [{"reason": "Capacity is unavailable at this time"}]})
        with pytest.raises(TransientFailure, match="Capacity is unavailable"):
            attempt(ECS)

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"cpu": 1000, "memory": 2048}, "task.cpu"),
            ({"cpu": 1024}, "task.memory"),
            ({"memory": 2048}, "task.cpu"),
            ({"cpu": 256, "memory": 8192}, "task.memory"),
            ({"cpu": True, "memory": 512}, "task.cpu"),
            ({"subnets": []}, "task.subnets"),
            ({"subnets": "subnet-1"}, "task.subnets"),
            ({"container": None}, "task.container"),
            ({"environment": {"DUETIME": "x"}}, "task.environment.DUETIME"),
            ({"environment": {"1X": "x"}}, "task.environment.1X"),
            ({"environment": {"X": 1}}, "task.environment.X"),
            ({"assign_public_ip": "yes"}, "task.assign_public_ip"),
            ({"completion": "sometime"}, "task.completion"),
            ({"completion": "callback", "heartbeat_seconds": 5}, "task.heartbeat_seconds"),
            ({"command": "ls"}, "task.command"),
        ],
    )
    def test_a_bad_setting_is_refused_by_its_name(self, changes: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidField) as refused:
            parse_task(ECS | changes)
        assert refused.value.field == field

    @pytest.mark.parametrize(
        ("task", "completion", "finding"),
        [
            ({"lastStatus": "RUNNING"}, "exit", StillRunning()),
            (
                {"lastStatus": "STOPPED", "containers": [{"name": "main", "exitCode": 0}]},
                "exit",
                Succeeded({"exit_code": 0, "task_arn": "arn:task"}),
            ),
            (
                {
                    "lastStatus": "STOPPED",
                    "containers": [{"name": "main", "exitCode": 2}],
                    "stoppedReason": "x",
                },
                "exit",
                Failed("the container ended with exit code 2: x"),
            ),
            (
                {"lastStatus": "STOPPED", "containers": [{"name": "main", "reason": "OutOfMemory"}]},
                "exit",
                Failed("the container ended with exit code None: OutOfMemory"),
            ),
            (
                {"lastStatus": "STOPPED", "containers": [{"name": "side", "exitCode": 0}]},
                "exit",
                Failed("the container ended with exit code None: no reason given"),
            ),
            (
                {"lastStatus": "STOPPED", "containers": [{"name": "main", "exitCode": 0}]},
                "callback",
                Failed("the container ended without reporting an outcome (no reason given)"),
            ),
        ],
    )
    def test_what_became_of_it(self, task: dict[str, Any], completion: str, finding: object) -> None:
        assert ecs_finding(task, self.HANDLE | {"completion": completion}) == finding

    def test_a_task_that_is_gone_has_failed(self, stand_in: Install) -> None:
        stand_in(lambda **_: {"tasks": [], "failures": [{"reason": "MISSING"}]})
        assert isinstance(EcsTask.look(self.HANDLE), Failed)

    def test_it_is_really_stopped(self, stand_in: Install) -> None:
        client = stand_in(lambda **_: {})
        EcsTask.end(self.HANDLE, "cancelled")
        assert client.calls == [
            ("stop_task", {"cluster": "arn:cluster", "task": "arn:task", "reason": "cancelled"})
        ]

    def test_one_that_reports_by_itself_is_given_a_token_and_a_lease_of_its_own(
        self, stand_in: Install
    ) -> None:
        stand_in(lambda **_: {"tasks": [{"taskArn": "arn:task"}]})
        settings = ECS | {"completion": "callback", "heartbeat_seconds": 90}
        assert EcsTask.wants_token(settings)
        assert not EcsTask.wants_token(ECS)
        assert attempt(settings).heartbeat == timedelta(seconds=90)


class TestNames:
    @pytest.mark.parametrize(
        "run_id",
        [
            KEY.run_id,
            "20261118T070000123Z-1234567-3f1f7c529d5c4a44",
            "20261118T070000123Z-m01234567-3f1f7c529d5c4a44",
        ],
    )
    def test_a_name_leads_back_to_its_run_and_fits(self, run_id: str) -> None:
        key = RunKey(KEY.job_id, run_id)
        execution, starter = execution_name(key, 21), started_by(key, 21)
        assert (len(execution) <= 80, len(starter) <= 128) == (True, True)
        assert parse_execution_name(execution) == (key, 21)
        assert parse_started_by(starter) == (key, 21)

    @pytest.mark.parametrize("name", ["", "duetime", "duetime_x_1", "ecs-svc/123", "duetime/x/y/z"])
    def test_what_somebody_else_started_is_nobodys(self, name: str) -> None:
        assert parse_execution_name(name) is None
        assert parse_started_by(name) is None
