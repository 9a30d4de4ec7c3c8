"""The `ecs` task: a container on Fargate, with the CPU and memory that the job asks for.

It succeeds when its container exits with 0 (`completion: exit`), which ECS reports as an event; or when it says so by
itself, with the attempt's token (`completion: callback`). The container finds what every attempt receives, and the
payload, as JSON in the environment variables DUETIME and DUETIME_PAYLOAD. On cancellation and timeout it is really
stopped.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from duetime.arns import Arn
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.run import RunKey
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import (
    content_of,
    parse_arn,
    parse_choice,
    parse_heartbeat,
    parse_text,
    refuse_unknown,
)
from duetime.tasks.interface import Accepted, AttemptContext, Failed, Finding, StillRunning, Succeeded
from duetime.tasks.work_names import started_by

LOOK_AGAIN: Final = timedelta(minutes=5)
_SETTINGS: Final = frozenset(
    {
        "cluster_arn",
        "task_definition_arn",
        "subnets",
        "security_groups",
        "assign_public_ip",
        "container",
        "command",
        "environment",
        "cpu",
        "memory",
        "completion",
        "heartbeat_seconds",
        "input",
    }
)
# What Fargate has: CPU units, and the MB of memory that go with each.
FARGATE_MEMORY: Final = {
    256: (512, 1024, 2048),
    512: range(1024, 4096 + 1, 1024),
    1024: range(2048, 8192 + 1, 1024),
    2048: range(4096, 16384 + 1, 1024),
    4096: range(8192, 30720 + 1, 1024),
    8192: range(16384, 61440 + 1, 4096),
    16384: range(32768, 122880 + 1, 8192),
}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OURS: Final = ("DUETIME", "DUETIME_PAYLOAD")


@dataclass(frozen=True, slots=True)
class EcsTask:
    cluster: Arn
    definition: Arn
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    assign_public_ip: bool
    container: str
    command: tuple[str, ...] | None
    environment: Mapping[str, str]
    cpu: int | None
    memory: int | None
    completion: str
    heartbeat: timedelta
    input: Any = None

    CAN_LOOK_AFTER: ClassVar[bool] = True
    TOKEN_SETTINGS: ClassVar[tuple[str, ...]] = ("completion",)
    outlives_worker: ClassVar[bool] = True

    @classmethod
    def wants_token(cls, settings: Mapping[str, Any]) -> bool:
        return settings.get("completion") == "callback"

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "EcsTask":
        refuse_unknown(settings, _SETTINGS)
        cpu, memory = _size(settings)
        completion = parse_choice(settings, "completion", ("exit", "callback"))
        return cls(
            cluster=parse_arn(settings, "cluster_arn", "ecs", "cluster/"),
            definition=parse_arn(settings, "task_definition_arn", "ecs", "task-definition/"),
            subnets=_texts(settings, "subnets", required=True),
            security_groups=_texts(settings, "security_groups"),
            assign_public_ip=_flag(settings, "assign_public_ip"),
            container=parse_text(settings, "container", longest=255) or _missing("container"),
            command=_texts(settings, "command") or None,
            environment=_variables(settings.get("environment", {})),
            cpu=cpu,
            memory=memory,
            completion=completion,
            heartbeat=parse_heartbeat(settings) if completion == "callback" else LOOK_AGAIN,
            input=settings.get("input"),
        )

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.cluster)
        reach.check_arn(self.definition)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        ecs = client("ecs", self.cluster.region)
        answer = call(
            ecs.run_task,
            cluster=self.cluster.text,
            taskDefinition=self.definition.text,
            launchType="FARGATE",
            count=1,
            # A start that is repeated within the hour starts nothing twice.
            clientToken=f"{context.run_id}-{context.attempt}"[:64],
            startedBy=started_by(RunKey(context.job_id, context.run_id), context.attempt),
            propagateTags="TASK_DEFINITION",
            networkConfiguration={"awsvpcConfiguration": self._network()},
            overrides=self._overrides(context),
        )
        if not answer.get("tasks"):
            raise TransientFailure(f"ECS did not start the container: {_reasons(answer.get('failures', []))}")
        return Accepted(self.heartbeat, self._handle(answer["tasks"][0]["taskArn"]))

    def _handle(self, task_arn: str) -> Mapping[str, Any]:
        return {
            "type": "ecs",
            "cluster_arn": self.cluster.text,
            "task_arn": task_arn,
            "region": self.cluster.region,
            "container": self.container,
            "completion": self.completion,
        }

    def _network(self) -> dict[str, Any]:
        return {
            "subnets": list(self.subnets),
            "securityGroups": list(self.security_groups),
            "assignPublicIp": "ENABLED" if self.assign_public_ip else "DISABLED",
        }

    def _overrides(self, context: AttemptContext) -> dict[str, Any]:
        told = {
            "DUETIME": json.dumps(context.as_object()),
            "DUETIME_PAYLOAD": json.dumps(content_of(self.input, context.payload)),
        }
        container: dict[str, Any] = {
            "name": self.container,
            "environment": [{"name": k, "value": v} for k, v in {**self.environment, **told}.items()],
        }
        if self.command:
            container["command"] = list(self.command)
        size = {"cpu": str(self.cpu), "memory": str(self.memory)} if self.cpu and self.memory else {}
        return {"containerOverrides": [container], **size}

    @classmethod
    def find(cls, settings: Mapping[str, Any], key: RunKey, attempt: int) -> Mapping[str, Any] | None:
        task = cls.parse({name: value for name, value in settings.items() if name != "type"})
        # No other filter goes with this one. It finds what is to run, started or not.
        answer = call(
            client("ecs", task.cluster.region).list_tasks,
            cluster=task.cluster.text,
            startedBy=started_by(key, attempt),
        )
        found = answer.get("taskArns", [])
        return task._handle(found[0]) if found else None

    @classmethod
    def look(cls, handle: Mapping[str, Any]) -> Finding:
        ecs = client("ecs", handle["region"])
        answer = call(ecs.describe_tasks, cluster=handle["cluster_arn"], tasks=[handle["task_arn"]])
        tasks = answer.get("tasks", [])
        return (
            finding_of(tasks[0], handle) if tasks else Failed("the container's task cannot be found any more")
        )

    @classmethod
    def end(cls, handle: Mapping[str, Any], reason: str) -> None:
        ecs = client("ecs", handle["region"])
        try:
            call(ecs.stop_task, cluster=handle["cluster_arn"], task=handle["task_arn"], reason=reason[:1024])
        except PermanentFailure as error:
            # ECS forgets a task about an hour after its end.
            if "not found" not in str(error):
                raise


def finding_of(task: Mapping[str, Any], handle: Mapping[str, Any]) -> Finding:
    """From what ECS says of a task, when asked or in the event of its end."""
    if task.get("lastStatus") != "STOPPED":
        return StillRunning()
    containers = [c for c in task.get("containers", []) if c.get("name") == handle["container"]]
    exit_code = containers[0].get("exitCode") if containers else None
    if exit_code == 0 and handle["completion"] == "exit":
        return Succeeded({"exit_code": 0, "task_arn": handle["task_arn"]})
    told = (
        task.get("stoppedReason")
        or (containers[0].get("reason") if containers else None)
        or "no reason given"
    )
    if exit_code == 0:
        return Failed(f"the container ended without reporting an outcome ({told})")
    return Failed(f"the container ended with exit code {exit_code}: {told}")


def _size(settings: Mapping[str, Any]) -> tuple[int | None, int | None]:
    cpu, memory = settings.get("cpu"), settings.get("memory")
    if cpu is None and memory is None:
        return None, None
    if type(cpu) is not int or cpu not in FARGATE_MEMORY:
        known = ", ".join(str(units) for units in FARGATE_MEMORY)
        raise InvalidField("task.cpu", f"must be one of {known} (CPU units), and comes with memory")
    if type(memory) is not int or memory not in FARGATE_MEMORY[cpu]:
        sizes = list(FARGATE_MEMORY[cpu])
        raise InvalidField(
            "task.memory", f"must be from {sizes[0]} to {sizes[-1]} MB in Fargate's steps for this cpu"
        )
    return cpu, memory


def _texts(settings: Mapping[str, Any], name: str, *, required: bool = False) -> tuple[str, ...]:
    texts = settings.get(name, [])
    fits = isinstance(texts, list) and len(texts) <= 64 and all(isinstance(text, str) for text in texts)
    if not fits or (required and not texts):
        raise InvalidField(f"task.{name}", "must be a list of texts" + (" and not empty" if required else ""))
    return tuple(texts)


def _flag(settings: Mapping[str, Any], name: str) -> bool:
    flag = settings.get(name, False)
    if not isinstance(flag, bool):
        raise InvalidField(f"task.{name}", "must be true or false")
    return flag


def _variables(variables: Any) -> Mapping[str, str]:
    if not isinstance(variables, Mapping) or len(variables) > 100:
        raise InvalidField("task.environment", "must be an object of at most 100 variables")
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name) or name in _OURS:
            raise InvalidField(f"task.environment.{name}", "is not a name that can be chosen")
        if not isinstance(value, str):
            raise InvalidField(f"task.environment.{name}", "must be text")
    return variables


def _missing(name: str) -> str:
    raise InvalidField(f"task.{name}", "is needed")


def _reasons(failures: list[Any]) -> str:
    return "; ".join(str(failure.get("reason", failure)) for failure in failures) or "no reason given"
