"""The `states` task: a Step Functions execution is started, and its end awaited unless the task says otherwise.

The execution's name follows from the run and the attempt, so a start that is repeated starts nothing twice. Its end
comes as an event; if that is lost, the watcher asks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from duetime.arns import Arn
from duetime.errors import InvalidField, PermanentFailure
from duetime.run import RunKey
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import content_of, parse_arn, refuse_unknown
from duetime.tasks.interface import Accepted, AttemptContext, Failed, Finding, StillRunning, Succeeded
from duetime.tasks.work_names import execution_name

LOOK_AGAIN: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StatesTask:
    machine: Arn
    wait: bool = True
    input: Any = None

    CAN_LOOK_AFTER: ClassVar[bool] = True

    @property
    def outlives_worker(self) -> bool:
        return self.wait

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "StatesTask":
        refuse_unknown(settings, {"state_machine_arn", "wait", "input"})
        wait = settings.get("wait", True)
        if not isinstance(wait, bool):
            raise InvalidField("task.wait", "must be true or false")
        machine = parse_arn(settings, "state_machine_arn", "states", "stateMachine:")
        return cls(machine, wait, settings.get("input"))

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.machine)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        name = execution_name(RunKey(context.job_id, context.run_id), context.attempt)
        answer = call(
            client("stepfunctions", self.machine.region).start_execution,
            stateMachineArn=self.machine.text,
            name=name,
            input=context.as_message(content_of(self.input, context.payload)),
        )
        arn = answer["executionArn"]
        if not self.wait:
            return {"execution_arn": arn}
        if ":express:" in arn:
            # It can be neither looked at nor stopped, and EventBridge does not hear of its end.
            raise PermanentFailure(
                f"{arn} was started, but an Express execution cannot be waited for: set the task's wait to false"
            )
        return Accepted(LOOK_AGAIN, self._handle(arn))

    def _handle(self, execution_arn: str) -> Mapping[str, Any]:
        return {"type": "states", "execution_arn": execution_arn, "region": self.machine.region}

    @classmethod
    def find(cls, settings: Mapping[str, Any], key: RunKey, attempt: int) -> Mapping[str, Any] | None:
        task = cls.parse({name: value for name, value in settings.items() if name != "type"})
        if not task.wait:
            return None
        handle = task._handle(_execution_arn(task.machine, execution_name(key, attempt)))
        return None if isinstance(cls._described(handle), Failed) else handle

    @classmethod
    def look(cls, handle: Mapping[str, Any]) -> Finding:
        found = cls._described(handle)
        if isinstance(found, Failed):
            return found
        return finding_of(found["status"], found.get("output"), found.get("error"), found.get("cause"))

    @classmethod
    def _described(cls, handle: Mapping[str, Any]) -> Mapping[str, Any] | Failed:
        """Only one refusal says that it is gone. After any other it may be running, and another must not be started."""
        try:
            described: Mapping[str, Any] = call(
                _client(handle).describe_execution, executionArn=handle["execution_arn"]
            )
        except PermanentFailure as error:
            if not _is_gone(error):
                raise
            return Failed(f"the execution cannot be found any more: {error}")
        return described

    @classmethod
    def end(cls, handle: Mapping[str, Any], reason: str) -> None:
        try:
            call(_client(handle).stop_execution, executionArn=handle["execution_arn"], cause=reason[:256])
        except PermanentFailure as error:
            if not _is_gone(error):
                raise


def finding_of(status: str, output: str | None, error: str | None, cause: str | None) -> Finding:
    if status in ("RUNNING", "PENDING_REDRIVE"):
        return StillRunning()
    if status == "SUCCEEDED":
        return Succeeded(_decoded(output))
    told = ": ".join(filter(None, (error, cause)))
    return Failed(f"the execution ended {status}{f': {told}' if told else ''}")


def _decoded(output: str | None) -> Any:
    try:
        return json.loads(output) if output else None
    except ValueError:
        return output


def _is_gone(error: PermanentFailure) -> bool:
    return str(error).startswith("ExecutionDoesNotExist")


def _execution_arn(machine: Arn, name: str) -> str:
    """Whatever version or alias of the machine was named: executions belong to the machine itself."""
    machine_name = machine.resource.split(":")[1]
    place = f"arn:{machine.partition}:states:{machine.region}:{machine.account}"
    return f"{place}:execution:{machine_name}:{name}"


def _client(handle: Mapping[str, Any]) -> Any:
    return client("stepfunctions", handle["region"])
