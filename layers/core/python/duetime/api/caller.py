"""Who is calling: the principal whose signature API Gateway verified."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from duetime.errors import NotIdentified
from duetime.job import Job

_ASSUMED_ROLE: Final = re.compile(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/[^/]+")


@dataclass(frozen=True, slots=True)
class Caller:
    # The role or user. Session names are dropped: whoever assumes the role is the same owner.
    principal: str
    is_admin: bool = False

    def may_see(self, job: Job) -> bool:
        return self.is_admin or job.owner == self.principal


def identify(event: Mapping[str, Any], admins: Collection[str]) -> Caller:
    """Fail closed. A route that lost its authorizer, or a gateway that lets a stray Authorization header through,
    must not turn a stranger into an owner."""
    authorizer = event.get("requestContext", {}).get("authorizer") or {}
    arn = (authorizer.get("iam") or {}).get("userArn")
    if not isinstance(arn, str) or not arn.startswith("arn:"):
        raise NotIdentified("the request carries no verified AWS identity: sign it with Signature Version 4")
    principal = principal_of(arn)
    return Caller(principal, is_admin=principal in admins)


def principal_of(arn: str) -> str:
    if match := _ASSUMED_ROLE.fullmatch(arn):
        partition, account, role = match.groups()
        return f"arn:{partition}:iam::{account}:role/{role}"
    return arn
