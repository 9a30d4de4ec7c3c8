"""`{"type": "slack", "webhook": {"secret": "arn:…"}, "text": "Paid {{payload.count}} invoices"}`"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.targets import Reach
from duetime.tasks.fields import parse_text, refuse_unknown
from duetime.tasks.http_exchange import Request, exchange
from duetime.tasks.interface import AttemptContext
from duetime.tasks.secrets import SecretReference


@dataclass(frozen=True, slots=True)
class SlackTask:
    webhook: SecretReference
    text: str

    # A worker performs it from beginning to end.
    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "SlackTask":
        """Refuse by the setting's name what could not work; this runs when a job is written, too."""
        refuse_unknown(settings, {"webhook", "text"})
        if not isinstance(settings.get("webhook"), Mapping):
            raise InvalidField("task.webhook", "must refer to a secret that holds the webhook's URL")
        text = parse_text(settings, "text", longest=3000)
        if text is None:
            raise InvalidField("task.text", "is needed")
        return cls(SecretReference.parse(settings["webhook"], "task.webhook"), text)

    def check(self, reach: Reach) -> None:
        """May the job's owner use this secret?"""
        self.webhook.check(reach)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:
        url = self.webhook.resolve(reach)
        # From here on the URL appears in no log, result or error.
        context.redactor.keep_secret(url)
        body = json.dumps({"text": self.text}).encode()
        request = Request("POST", url, {"Content-Type": "application/json", **context.as_headers()}, body)
        # `exchange` checks the address it connects to, keeps to the time that is left, and can be interrupted.
        response = exchange(request, reach, seconds=context.seconds_left(), stop=context.stop)
        context.log(f"Slack answered {response.status}")
        if response.status == 200:
            return {"posted": self.text}
        answer = f"Slack answered {response.status}: {response.body[:200].decode('utf-8', 'replace')}"
        if response.status == 429 or response.status >= 500:
            raise TransientFailure(answer)
        raise PermanentFailure(answer)
