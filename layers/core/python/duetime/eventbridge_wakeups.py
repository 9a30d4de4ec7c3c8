"""Wake-ups on EventBridge Scheduler."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from duetime.due_messages import Tick
from duetime.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

QUICK: Final = Config(
    connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3}
)
"""A caller waits for the answer: after some seconds an honest 503 is worth more than another try."""

# EventBridge goes on trying to reach the queue for as long as the wake-up is of use; then the backstop is sooner.
_RETRIES: Final = {"MaximumEventAgeInSeconds": 900, "MaximumRetryAttempts": 30}


class EventBridgeWakeUps:
    def __init__(
        self,
        client: "EventBridgeSchedulerClient",
        *,
        group: str,
        role_arn: str,
        queue_arn: str,
        dead_letter_queue_arn: str,
    ) -> None:
        self._client = client
        self._group = group
        self._target = {
            "Arn": queue_arn,
            "RoleArn": role_arn,
            "Input": json.dumps(Tick().to_body()),
            "RetryPolicy": _RETRIES,
            "DeadLetterConfig": {"Arn": dead_letter_queue_arn},
        }

    def create(self, minute: datetime) -> None:
        try:
            self._client.create_schedule(
                Name=schedule_name(minute),
                GroupName=self._group,
                ScheduleExpression=f"at({minute:%Y-%m-%dT%H:%M:%S})",
                ScheduleExpressionTimezone="UTC",
                FlexibleTimeWindow={"Mode": "OFF"},
                ActionAfterCompletion="DELETE",
                Target=self._target,  # type: ignore[arg-type]
            )
        except self._client.exceptions.ConflictException:
            # Somebody was faster: the minute has its wake-up, which is all that was wanted.
            return
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"no wake-up could be set for {minute:%H:%M} UTC") from error


def schedule_name(minute: datetime) -> str:
    """Letters, digits, dots, dashes and underscores, 64 at the most, are what EventBridge takes."""
    return f"wake-{minute:%Y-%m-%dT%H-%M}Z"
