"""The `lambda` task: a function is invoked, and its answer awaited (`sync`) or not (`event`)."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from duetime.arns import Arn
from duetime.errors import PermanentFailure, TransientFailure
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import content_of, parse_arn, parse_choice, refuse_unknown
from duetime.tasks.interface import AttemptContext

# A function says that another attempt is of no use by an error of this name.
_PERMANENT: Final = "PermanentFailure"


@dataclass(frozen=True, slots=True)
class LambdaTask:
    function: Arn
    invocation: str = "sync"
    input: Any = None

    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "LambdaTask":
        refuse_unknown(settings, {"function_arn", "invocation", "input"})
        return cls(
            parse_arn(settings, "function_arn", "lambda", "function:"),
            parse_choice(settings, "invocation", ("sync", "event")),
            settings.get("input"),
        )

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.function)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        message = context.as_message(content_of(self.input, context.payload))
        is_sync = self.invocation == "sync"
        # A function cannot be interrupted; whoever stops the attempt stops waiting for it.
        invoke = client("lambda", self.function.region, max(1, int(context.seconds_left()))).invoke
        answer = call(
            invoke,
            FunctionName=self.function.text,
            InvocationType="RequestResponse" if is_sync else "Event",
            LogType="Tail" if is_sync else "None",
            Payload=message.encode(),
        )
        if tail := answer.get("LogResult"):
            context.log(base64.b64decode(tail).decode("utf-8", "replace"))
        text = answer["Payload"].read().decode("utf-8", "replace")
        if "FunctionError" in answer:
            raise _failure(text)
        return {"status_code": answer["StatusCode"]} if not is_sync else _decoded(text)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text or None


def _failure(text: str) -> Exception:
    error = _decoded(text)
    kind = error.get("errorType", "error") if isinstance(error, dict) else "error"
    message = error.get("errorMessage", text) if isinstance(error, dict) else text
    failure = PermanentFailure if str(kind).endswith(_PERMANENT) else TransientFailure
    return failure(f"the function failed: {kind}: {message}")
