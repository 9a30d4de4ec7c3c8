"""Log lines in the table of records: what surrounds jobs and runs, and expires."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime.clock import Clock
from duetime.instants import format_instant, parse_instant
from duetime.logbook import PIECES_KEPT, LogLine, LogPiece
from duetime.run import RunKey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoLogs:
    def __init__(
        self, client: "DynamoDBClient", *, records_table: str, kept_for: timedelta, clock: Clock
    ) -> None:
        self._client = client
        self._table = records_table
        self._kept_for = kept_for
        self._clock = clock

    def put_piece(self, key: RunKey, piece: LogPiece) -> None:
        lines = [[format_instant(line.at), line.text] for line in piece.lines]
        expires_at = int((self._clock.now() + self._kept_for).timestamp())
        self._client.put_item(
            TableName=self._table,
            Item={
                "subject": {"S": _subject(key)},
                "entry": {"S": f"{piece.attempt:03d}#{piece.number % PIECES_KEPT:02d}"},
                "attempt": {"N": str(piece.attempt)},
                "number": {"N": str(piece.number)},
                "lines": {"S": json.dumps(lines, separators=(",", ":"))},
                "expires_at": {"N": str(expires_at)},
            },
        )

    def pieces(self, key: RunKey) -> Sequence[LogPiece]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="subject = :subject",
            ExpressionAttributeValues={":subject": {"S": _subject(key)}},
            ConsistentRead=True,
        )
        return sorted(_piece(item) for page in pages for item in page["Items"])


def _subject(key: RunKey) -> str:
    return f"log#{key.job_id}#{key.run_id}"


def _piece(item: Any) -> LogPiece:
    lines = [LogLine(parse_instant(at), text) for at, text in json.loads(item["lines"]["S"])]
    return LogPiece(int(item["attempt"]["N"]), int(item["number"]["N"]), lines)
