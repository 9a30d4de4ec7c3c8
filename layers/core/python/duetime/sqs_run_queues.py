"""The run queues and their dead-letter queues on SQS."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeVar

from duetime.batches import in_batches
from duetime.hints import Hint
from duetime.instants import format_instant
from duetime.job import Priority
from duetime.run import Run, RunKey
from duetime.watch import spread

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BATCH: Final = 10
_ERROR_LENGTH: Final = 4000
_GROUPS: Final = 1_000_000_007

Sendable = TypeVar("Sendable", Hint, Run)


class SqsRunQueues:
    def __init__(
        self,
        client: "SQSClient",
        *,
        run_queue_urls: Mapping[Priority, str],
        dead_letter_queue_urls: Mapping[Priority, str],
        lead: timedelta,
    ) -> None:
        """The lead is how much earlier than its run a hint shall arrive: as much as the queue may be late."""
        self._client = client
        self._lead = lead
        self._run_queue_urls = run_queue_urls
        self._dead_letter_queue_urls = dead_letter_queue_urls

    def send_hints(self, hints: Sequence[Hint], now: datetime) -> Collection[RunKey]:
        return self._send(self._run_queue_urls, hints, lambda hint: _hint_entry(hint, now, self._lead))

    def send_dead_letters(self, runs: Sequence[Run]) -> Collection[RunKey]:
        return self._send(self._dead_letter_queue_urls, runs, _dead_letter_entry)

    def _send(
        self,
        urls: Mapping[Priority, str],
        things: Iterable[Sendable],
        entry_of: Callable[[Sendable], dict[str, Any]],
    ) -> Collection[RunKey]:
        failed: set[RunKey] = set()
        for priority, batch in _batches(things):
            entries = [entry_of(thing) | {"Id": str(position)} for position, thing in enumerate(batch)]
            answer = self._client.send_message_batch(QueueUrl=urls[priority], Entries=entries)  # type: ignore[arg-type]
            failed |= {batch[int(failure["Id"])].key for failure in answer.get("Failed", [])}
        return failed


def _batches(things: Iterable[Sendable]) -> Iterator[tuple[Priority, Sequence[Sendable]]]:
    def priority_of(thing: Sendable) -> Priority:
        return thing.priority

    for priority, group in groupby(sorted(things, key=priority_of), key=priority_of):
        for batch in in_batches(list(group), _BATCH):
            yield priority, batch


def _hint_entry(hint: Hint, now: datetime, lead: timedelta) -> dict[str, Any]:
    return {
        "MessageBody": hint.to_message(),
        "DelaySeconds": hint.delay_seconds(now, lead),
        "MessageGroupId": _group_of(hint.owner),
    }


def _dead_letter_entry(run: Run) -> dict[str, Any]:
    body = {
        "job_id": run.job_id,
        "run_id": run.run_id,
        "owner": run.owner,
        "due_at": format_instant(run.due_at),
        "attempt": run.attempt,
        "error_message": (run.error_message or "")[:_ERROR_LENGTH],
    }
    return {"MessageBody": json.dumps(body), "MessageGroupId": _group_of(run.owner)}


def _group_of(owner: str) -> str:
    """On a standard queue the group is a fair-queue tenant, so that one owner's flood does not delay the others.
    An ARN may be longer than a group id's 128 characters; a number stands for it."""
    return f"owner-{spread(owner, _GROUPS)}"
