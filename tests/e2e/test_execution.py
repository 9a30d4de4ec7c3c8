"""Running jobs, on the deployed stack: retries, lost workers, cancellation, callbacks, logs, dead letters."""

import io
import json
import os
import signal
import threading
import time
import zipfile
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
from duetime_client import ApiError, Client

from local.stack import Up
from tests.e2e.conftest import Account, a_request, ended_run, wait_for
from tests.e2e.test_dead_worker import is_running, worker_processes
from tests.listener import Answer, Received, listening


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def http_job(url: str, **changes: Any) -> dict[str, Any]:
    task = {"type": "http", "url": url} | changes.pop("task", {})
    return a_request(task=task, **changes)


def python_job(function: str, **changes: Any) -> dict[str, Any]:
    return a_request(task={"type": "python", "function": f"duetime_examples.{function}"}, **changes)


def latest(client: Client, job_id: str) -> dict[str, Any]:
    run: dict[str, Any] = client.get_status(job_id)["latest_run"]
    return run


def has_succeeded(client: Client, job_id: str) -> bool:
    return bool(latest(client, job_id)["status"] == "SUCCEEDED")


class TestRetries:
    def test_the_delays_are_as_the_policy_and_the_target_say(self, client: Client) -> None:
        answers = iter([Answer(503), Answer(429, headers={"Retry-After": "2"}), Answer(200)])
        with listening(lambda _: next(answers)) as target:
            retry = {"kind": "fixed", "base_seconds": 1}
            job_id = client.create_job(http_job(target.url, retry=retry))["job_id"]
            run = ended_run(client, job_id)
        assert [attempt["outcome"] for attempt in run["attempts"]] == ["FAILED", "FAILED", "SUCCEEDED"]
        first, second, third = run["attempts"]
        assert seconds_between(first["end_time"], second["start_time"]) >= 1
        assert seconds_between(second["end_time"], third["start_time"]) >= 2
        assert [attempt["error"] for attempt in run["attempts"]][2] is None

    def test_a_dead_letter_is_listed_and_after_its_target_was_mended_a_redrive_succeeds(
        self, client: Client
    ) -> None:
        mended = threading.Event()
        with listening(lambda _: Answer(200 if mended.is_set() else 500, b"out of order")) as target:
            job_id = client.create_job(http_job(target.url, max_retries=0))["job_id"]
            run = ended_run(client, job_id)
            assert run["status"] == "DEAD_LETTERED"
            listed = client.list_dead_letters(job_id=job_id)["items"]
            assert [(letter["run_id"], letter["error_message"]) for letter in listed] == [
                (run["run_id"], "the target answered 500: out of order")
            ]
            mended.set()
            assert client.redrive_run(job_id, run["run_id"])["status"] == "QUEUED"
            wait_for(lambda: latest(client, job_id)["status"] == "SUCCEEDED")
        assert client.list_dead_letters(job_id=job_id)["items"] == []
        again = latest(client, job_id)
        assert [attempt["outcome"] for attempt in again["attempts"]] == ["FAILED", "SUCCEEDED"]
        with pytest.raises(ApiError) as refused:
            client.redrive_run(job_id, run["run_id"])
        assert refused.value.status == 409

    def test_many_are_redriven_at_once(self, client: Client) -> None:
        mended = threading.Event()
        with listening(lambda _: Answer(200 if mended.is_set() else 400)) as target:
            jobs = [client.create_job(http_job(target.url))["job_id"] for _ in range(3)]
            for job_id in jobs:
                assert ended_run(client, job_id)["status"] == "DEAD_LETTERED"
            mended.set()
            redriven = client.redrive_dead_letters()["redriven"]
            assert {run["job_id"] for run in redriven} >= set(jobs)
            for job_id in jobs:
                wait_for(partial(has_succeeded, client, job_id))


class TestLostWorkers:
    def test_a_killed_workers_run_is_retried_with_its_checkpoint_and_its_late_answer_is_refused(
        self, client: Client, account: Account, up: Up
    ) -> None:
        received: list[dict[str, str]] = []
        reached, release = threading.Event(), threading.Event()

        def respond(request: Received) -> Answer:
            received.append(request.headers)
            if len(received) == 1:
                reached.set()
                release.wait(120)
            return Answer(200)

        with listening(respond) as target:
            task = {"callback": {"heartbeat_seconds": 60}}
            job_id = client.create_job(http_job(target.url, task=task, timeout_seconds=600))["job_id"]
            assert reached.wait(60)
            run_id, token = received[0]["Idempotency-Key"], received[0]["Duetime-Callback-Token"]
            client.report_heartbeat(job_id, run_id, token, checkpoint={"done": 40})
            killed = worker_processes(up, account.output("WorkerFunctionName"))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not any(is_running(pid) for pid in killed))
            wait_for(lambda: len(received) == 2, patience=120)
            with pytest.raises(ApiError) as refused:
                client.report_completion(job_id, run_id, token, result="late")
            assert refused.value.status == 409
            release.set()
            run = ended_run(client, job_id)
        assert (run["status"], [attempt["outcome"] for attempt in run["attempts"]]) == (
            "SUCCEEDED",
            ["LOST", "SUCCEEDED"],
        )
        second = received[1]
        assert json.loads(second["Duetime-Checkpoint"]) == {"done": 40}
        assert int(second["Duetime-Fence"]) > int(received[0]["Duetime-Fence"])
        assert second["Idempotency-Key"] == run_id
        assert second["Duetime-Callback-Token"] != token


class TestCancellation:
    def test_a_request_under_way_is_broken_off(self, client: Client) -> None:
        reached, release = threading.Event(), threading.Event()

        def respond(_: Received) -> Answer:
            reached.set()
            release.wait(60)
            return Answer()

        with listening(respond) as target:
            job_id = client.create_job(http_job(target.url))["job_id"]
            assert reached.wait(60)
            client.cancel_job(job_id)
            run = ended_run(client, job_id)
            release.set()
        assert run["status"] == "CANCELLED"
        assert run["error_message"].startswith("it was cancelled by arn:aws:iam::")
        assert client.get_job(job_id)["status"] == "CANCELLED"

    def test_a_busy_function_is_killed(self, client: Client, tmp_path: Path) -> None:
        mark = tmp_path / "pid"
        job_id = client.create_job(python_job("endless:spin", payload={"mark": str(mark)}))["job_id"]
        wait_for(lambda: mark.exists() and mark.read_text())
        run = latest(client, job_id)
        client.cancel_run(job_id, run["run_id"])
        assert ended_run(client, job_id)["status"] == "CANCELLED"
        wait_for(lambda: not is_running(int(mark.read_text())))


class TestCallbacks:
    def test_long_work_completes_by_callback(self, client: Client) -> None:
        with listening(lambda _: Answer(202)) as target:
            task = {"callback": {"heartbeat_seconds": 60}}
            job_id = client.create_job(http_job(target.url, task=task, timeout_seconds=7200))["job_id"]
            wait_for(lambda: target.received)
            headers = target.received[0].headers
            run_id, token = headers["Idempotency-Key"], headers["Duetime-Callback-Token"]
            wait_for(lambda: seconds_between(*_lease(client, job_id)) > 30)
            answer = client.report_heartbeat(job_id, run_id, token, checkpoint={"done": 1})
            assert answer["cancel_requested"] is False
            with pytest.raises(ApiError) as refused:
                client.report_completion(job_id, run_id, "another token")
            assert refused.value.status == 409
            assert (
                client.report_completion(job_id, run_id, token, result={"paid": 3})["status"] == "SUCCEEDED"
            )
        run = ended_run(client, job_id)
        assert (run["status"], run["result"]) == ("SUCCEEDED", {"paid": 3})
        assert client.get_job(job_id)["status"] == "COMPLETED"

    def test_a_reporter_needs_no_more_than_its_policy_and_the_token(
        self, client: Client, account: Account
    ) -> None:
        reporter = account.client_with(account.output("ReporterPolicyArn"))
        with listening(lambda _: Answer(202)) as target:
            task: dict[str, Any] = {"callback": {}}
            job_id = client.create_job(http_job(target.url, task=task))["job_id"]
            wait_for(lambda: target.received)
            headers = target.received[0].headers
            with pytest.raises(ApiError) as refused:
                reporter.get_job(job_id)
            assert refused.value.status == 403
            run_id, token = headers["Idempotency-Key"], headers["Duetime-Callback-Token"]
            assert reporter.report_failure(job_id, run_id, token, "no", retry=False)["status"] == "FAILED"
        assert ended_run(client, job_id)["status"] == "DEAD_LETTERED"


def _lease(client: Client, job_id: str) -> tuple[str, str]:
    run = latest(client, job_id)
    return run["start_time"], run["deadline_at"]


class TestLogs:
    def test_a_log_can_be_read_while_the_run_goes_on_and_afterwards(
        self, client: Client, tmp_path: Path
    ) -> None:
        gate = tmp_path / "gate"
        job_id = client.create_job(python_job("talkative:talk", payload={"gate": str(gate), "lines": 3}))[
            "job_id"
        ]

        def texts() -> list[str]:
            return [line["text"] for line in client.get_logs(job_id)["items"]]

        wait_for(lambda: len(texts()) == 3)
        assert latest(client, job_id)["status"] == "RUNNING"
        gate.write_text("go on")
        run = ended_run(client, job_id)
        assert texts() == ["line 0", "line 1", "line 2", "that is all"]
        assert [line["text"] for line in client.get_logs(job_id, run_id=run["run_id"], tail=1)["items"]] == [
            "that is all"
        ]
        assert run["log_url"] is None

    def test_a_long_log_and_a_large_result_are_behind_urls(self, client: Client) -> None:
        payload = {"lines": 5000, "result": 50_000}
        job_id = client.create_job(python_job("talkative:talk", payload=payload))["job_id"]
        run = ended_run(client, job_id)
        assert run["status"] == "SUCCEEDED"
        log = urllib3.request("GET", run["log_url"])
        assert (log.status, log.data.count(b"line ")) == (200, 5000)
        assert run["result"] is None
        assert urllib3.request("GET", run["result_url"]).json() == "x" * 50_000

    def test_a_secret_is_sent_and_kept_nowhere(self, client: Client, account: Account) -> None:
        secrets = account.service("secretsmanager")
        name = f"demo-{time.time_ns()}"
        arn = secrets.create_secret(Name=name, SecretString="correct-horse-battery")["ARN"]

        def echo(request: Received) -> Answer:
            return Answer(200, json.dumps(request.headers["Authorization"]).encode())

        with listening(echo) as target:
            headers = {"Authorization": {"secret": arn, "prefix": "Bearer "}}
            job_id = client.create_job(http_job(target.url, task={"headers": headers}))["job_id"]
            run = ended_run(client, job_id)
        assert target.received[0].headers["Authorization"] == "Bearer correct-horse-battery"
        assert run["result"]["body"] == '"Bearer [secret]"'
        assert "battery" not in json.dumps([run, client.get_job(job_id)])


class TestTargets:
    """What the emulator can really perform."""

    def run_of(self, client: Client, task: dict[str, Any], **changes: Any) -> dict[str, Any]:
        job_id = client.create_job(a_request(task=task, payload={"batch": "eu"}, max_retries=0, **changes))[
            "job_id"
        ]
        return ended_run(client, job_id)

    def queue(self, account: Account) -> tuple[str, Callable[[], Any]]:
        """Its ARN, and what it has received."""
        sqs, name = account.service("sqs"), f"demo-{time.time_ns()}"
        allow = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        url = sqs.create_queue(QueueName=name, Attributes={"Policy": policy})["QueueUrl"]

        def receive() -> Any:
            messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1).get("Messages", [])
            return json.loads(messages[0]["Body"]) if messages else None

        return f"arn:aws:sqs:us-east-1:000000000000:{name}", receive

    def test_sqs(self, client: Client, account: Account) -> None:
        arn, receive = self.queue(account)
        run = self.run_of(client, {"type": "sqs", "queue_arn": arn})
        assert run["status"] == "SUCCEEDED", run["error_message"]
        message = wait_for(receive)
        assert (message["payload"], message["duetime"]["run_id"]) == ({"batch": "eu"}, run["run_id"])

    def test_sns(self, client: Client, account: Account) -> None:
        arn, receive = self.queue(account)
        sns = account.service("sns")
        topic = sns.create_topic(Name=f"demo-{time.time_ns()}")["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        run = self.run_of(client, {"type": "sns", "topic_arn": topic})
        assert run["status"] == "SUCCEEDED", run["error_message"]
        assert json.loads(wait_for(receive)["Message"])["payload"] == {"batch": "eu"}

    def test_events(self, client: Client, account: Account) -> None:
        arn, receive = self.queue(account)
        events, name = account.service("events"), f"demo-{time.time_ns()}"
        bus = events.create_event_bus(Name=name)["EventBusArn"]
        events.put_rule(Name="all", EventBusName=name, EventPattern=json.dumps({"source": ["duetime"]}))
        events.put_targets(Rule="all", EventBusName=name, Targets=[{"Id": "queue", "Arn": arn}])
        run = self.run_of(client, {"type": "events", "event_bus_arn": bus})
        assert run["status"] == "SUCCEEDED", run["error_message"]
        assert wait_for(receive)["detail"]["payload"] == {"batch": "eu"}

    def test_lambda(self, client: Client, account: Account) -> None:
        function = _function(
            account,
            "def handle(event, context):\n"
            "    print('working on', event['payload'])\n"
            "    if event['payload'].get('fail'): raise ValueError('no such batch')\n"
            "    return {'paid': event['duetime']['fence']}\n",
        )
        run = self.run_of(client, {"type": "lambda", "function_arn": function})
        assert (run["status"], run["result"]) == ("SUCCEEDED", {"paid": 1}), run["error_message"]
        failed = self.run_of(client, {"type": "lambda", "function_arn": function, "input": {"fail": True}})
        assert failed["status"] == "DEAD_LETTERED"
        assert "no such batch" in failed["error_message"]

    @pytest.mark.parametrize(
        ("last", "status"),
        [
            ({"Type": "Pass", "Result": {"paid": 3}, "End": True}, "SUCCEEDED"),
            ({"Type": "Fail", "Error": "Boom", "Cause": "it broke"}, "DEAD_LETTERED"),
        ],
    )
    def test_states_reports_its_end_through_eventbridge(
        self, client: Client, account: Account, last: dict[str, Any], status: str
    ) -> None:
        machine = _machine(account, {"StartAt": "Last", "States": {"Last": last}})
        run = self.run_of(client, {"type": "states", "state_machine_arn": machine})
        assert run["status"] == status, run["error_message"]
        if status == "SUCCEEDED":
            assert run["result"] == {"paid": 3}
        else:
            assert "Boom" in run["error_message"]

    def test_states_is_really_stopped_when_its_run_is_cancelled(
        self, client: Client, account: Account
    ) -> None:
        wait = {"Type": "Wait", "Seconds": 600, "End": True}
        machine = _machine(account, {"StartAt": "Wait", "States": {"Wait": wait}})
        task = {"type": "states", "state_machine_arn": machine}
        job_id = client.create_job(a_request(task=task, timeout_seconds=3600))["job_id"]
        states = account.service("stepfunctions")

        def executions() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = states.list_executions(stateMachineArn=machine)["executions"]
            return found

        wait_for(executions)
        wait_for(lambda: seconds_between(*_lease(client, job_id)) > 60)
        client.cancel_job(job_id)
        assert ended_run(client, job_id)["status"] == "CANCELLED"
        assert [execution["status"] for execution in executions()] == ["ABORTED"]

    def test_ecs_is_started_and_really_stopped(self, client: Client, account: Account) -> None:
        """The emulator runs no container without Docker, but keeps the books: started, by whom, stopped, why."""
        ecs, name = account.service("ecs"), f"demo-{time.time_ns()}"
        cluster = ecs.create_cluster(clusterName=name)["cluster"]["clusterArn"]
        definition = ecs.register_task_definition(
            family=name,
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu="256",
            memory="512",
            containerDefinitions=[{"name": "main", "image": "payout"}],
        )["taskDefinition"]["taskDefinitionArn"]
        task = {
            "type": "ecs",
            "cluster_arn": cluster,
            "task_definition_arn": definition,
            "subnets": ["subnet-1"],
            "container": "main",
            "cpu": 1024,
            "memory": 2048,
        }
        job_id = client.create_job(a_request(task=task, timeout_seconds=3600))["job_id"]

        def started() -> Any:
            arns = ecs.list_tasks(cluster=cluster)["taskArns"]
            return ecs.describe_tasks(cluster=cluster, tasks=arns)["tasks"] if arns else None

        (container,) = wait_for(started)
        assert container["startedBy"].startswith(f"duetime/{job_id}/")
        wait_for(lambda: seconds_between(*_lease(client, job_id)) > 60)
        client.cancel_job(job_id)
        assert ended_run(client, job_id)["status"] == "CANCELLED"
        (stopped,) = ecs.describe_tasks(cluster=cluster, tasks=[container["taskArn"]])["tasks"]
        assert (stopped["lastStatus"], "cancelled by" in stopped["stoppedReason"]) == ("STOPPED", True)

    def test_what_is_not_listed_is_refused_when_the_job_is_written(
        self, client: Client, account: Account
    ) -> None:
        for arn in (
            f"arn:aws:lambda:us-east-1:000000000000:function:{account.output('WorkerFunctionName')}",
            "arn:aws:lambda:us-east-1:000000000000:function:other",
        ):
            with pytest.raises(ApiError) as refused:
                client.create_job(a_request(task={"type": "lambda", "function_arn": arn}))
            assert (refused.value.status, refused.value.problem["errors"][0]["field"]) == (400, "task")

    def test_the_emulators_own_port_is_out_of_reach_though_loopback_is_listed(
        self, client: Client, stack: dict[str, str]
    ) -> None:
        with pytest.raises(ApiError, match="belongs to the worker itself"):
            client.create_job(http_job(f"{stack['endpoint_url']}/_ministack/health"))


def _role(account: Account) -> str:
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    created = account.service("iam").create_role(
        RoleName=f"demo-{time.time_ns()}", AssumeRolePolicyDocument=document
    )
    arn: str = created["Role"]["Arn"]
    return arn


def _function(account: Account, source: str) -> str:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("main.py", source)
    created = account.service("lambda").create_function(
        FunctionName=f"demo-{time.time_ns()}",
        Runtime="python3.13",
        Role=_role(account),
        Handler="main.handle",
        Code={"ZipFile": content.getvalue()},
    )
    arn: str = created["FunctionArn"]
    return arn


def _machine(account: Account, definition: dict[str, Any]) -> str:
    created = account.service("stepfunctions").create_state_machine(
        name=f"demo-{time.time_ns()}",
        definition=json.dumps(definition),
        roleArn=_role(account),
    )
    arn: str = created["stateMachineArn"]
    return arn
