"""Who is calling: the principal whose signature API Gateway verified."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from duetime.audit import Actor, Source
from duetime.errors import NotIdentified
from duetime.job import Job
from duetime.tracing import trace_id_in

_LONGEST_AGENT: Final = 200
_OWNER: Final = re.compile(r"arn:[\w-]+:iam::\d{12}:(role/.+|user/.+|root)")
_ASSUMED_ROLE: Final = re.compile(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/[^/]+")


@dataclass(frozen=True, slots=True)
class Caller:
    # The role or user. Session names are dropped: whoever assumes the role is the same owner.
    principal: str
    is_admin: bool = False
    source: Source = field(default_factory=Source)

    @property
    def actor(self) -> Actor:
        return Actor(self.principal, self.source)

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
    if not _OWNER.fullmatch(principal):
        # A federated session, say, has a name that whoever made it chose: it would be anybody.
        raise NotIdentified(f"{arn} is neither a role nor a user: assume a role, and sign as that")
    return Caller(principal, principal in admins, _source_of(event))


def _source_of(event: Mapping[str, Any]) -> Source:
    context = event["requestContext"]
    http = context.get("http") or {}
    agent = http.get("userAgent")
    return Source(
        http.get("sourceIp"),
        agent and str(agent)[:_LONGEST_AGENT],
        context.get("requestId"),
        trace_id_in(event.get("headers") or {}),
    )


def principal_of(arn: str) -> str:
    if match := _ASSUMED_ROLE.fullmatch(arn):
        partition, account, role = match.groups()
        return f"arn:{partition}:iam::{account}:role/{role}"
    return arn
