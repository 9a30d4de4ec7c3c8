"""The `events` task: an event is put on an EventBridge bus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from duetime.arns import Arn
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import content_of, parse_arn, parse_text, refuse_unknown
from duetime.tasks.interface import AttemptContext

_SOURCE: Final = "duetime"
_DETAIL_TYPE: Final = "Duetime run"


@dataclass(frozen=True, slots=True)
class EventsTask:
    bus: Arn
    source: str = _SOURCE
    detail_type: str = _DETAIL_TYPE
    input: Any = None

    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "EventsTask":
        refuse_unknown(settings, {"event_bus_arn", "source", "detail_type", "input"})
        source = parse_text(settings, "source", default=_SOURCE)
        if source and source.startswith("aws."):
            raise InvalidField("task.source", "must not begin with aws., which is for AWS itself")
        return cls(
            parse_arn(settings, "event_bus_arn", "events", "event-bus/"),
            source or _SOURCE,
            parse_text(settings, "detail_type", default=_DETAIL_TYPE, longest=128) or _DETAIL_TYPE,
            settings.get("input"),
        )

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.bus)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        entry = {
            "EventBusName": self.bus.text,
            "Source": self.source,
            "DetailType": self.detail_type,
            "Detail": context.as_message(content_of(self.input, context.payload)),
        }
        answer = call(client("events", self.bus.region).put_events, Entries=[entry])
        (outcome,) = answer["Entries"]
        if code := outcome.get("ErrorCode"):
            passing = code in ("ThrottlingException", "InternalFailure", "InternalException")
            kind = TransientFailure if passing else PermanentFailure
            raise kind(f"{code}: {outcome.get('ErrorMessage', '')}")
        return {"event_id": outcome["EventId"]}
