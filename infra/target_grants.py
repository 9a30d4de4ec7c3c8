"""From the ARNs that an environment allows to the grants of worker and watcher: what a task may be told to reach, the
worker may reach, what it started there the watcher may look after, and nothing else."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

# What a task does with a resource of each service. ECS and Step Functions also name what they started.
ACTIONS = {
    "lambda": ["lambda:InvokeFunction"],
    "sqs": ["sqs:SendMessage"],
    "sns": ["sns:Publish"],
    "events": ["events:PutEvents"],
    "states": ["states:StartExecution"],
    "ecs": ["ecs:RunTask"],
    "iam": ["iam:PassRole"],
    "secretsmanager": ["secretsmanager:GetSecretValue"],
    "ssm": ["ssm:GetParameter"],
    # For those of the others that are encrypted with a key of one's own.
    "kms": ["kms:Decrypt", "kms:GenerateDataKey"],
}
CONDITIONS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "iam": {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
    # Never by itself, only on behalf of what a task reaches.
    "kms": {
        "StringLike": {
            "kms:ViaService": [f"{each}.*.amazonaws.com" for each in ("secretsmanager", "ssm", "sns", "sqs")]
        }
    },
}
_PATTERN = re.compile(r"arn:[^:]+:(?P<service>[a-z-]+):[a-z0-9*?-]*:[0-9*?]*:(?P<resource>.+)")
# Every resource of Duetime's, in any environment: its functions, its queues and topics, its roles.
_OWN = ("function:duetime-*", "duetime-*", "role/duetime-*")


def service_of(pattern: str) -> str:
    found = _PATTERN.fullmatch(pattern)
    return found["service"] if found else ""


def is_grantable(pattern: str) -> str | None:
    if service_of(pattern) not in ACTIONS:
        return f"a list of ARN patterns, each of one service: {', '.join(sorted(ACTIONS))}"
    if service_of(pattern) == "kms" and not _resource_of(pattern).startswith("key/"):
        return "a list of ARN patterns, and those of kms name keys: arn:aws:kms:…:…:key/…"
    return None


def reaches_duetime(pattern: str) -> bool:
    """Whether a pattern covers anything that a stack of Duetime may be made of. A task that could invoke job_service
    with an event of its own making would be anybody; and the one next door, in another environment, is as precious."""
    resource = _resource_of(pattern)
    return any(overlap(resource, own) for own in _OWN)


def by_service(patterns: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pattern in sorted(set(patterns)):
        found.setdefault(service_of(pattern), []).append(pattern)
    return found


def clusters_of(patterns: Iterable[str]) -> list[str]:
    return [pattern for pattern in patterns if ":cluster/" in pattern]


def containers_in(clusters: Sequence[str]) -> list[str]:
    """ECS calls them tasks. One has no name beforehand; its cluster has."""
    return [f"{cluster.replace(':cluster/', ':task/')}/*" for cluster in clusters]


def executions_of(machines: Sequence[str]) -> list[str]:
    """Of a state machine, whatever version or alias of it is allowed: executions belong to the machine itself."""
    named = [machine.partition(":stateMachine:") for machine in machines]
    return [f"{place}:execution:{qualified.split(':')[0] or '*'}:*" for place, _, qualified in named]


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Whether there is a text that both patterns match, as IAM matches: `*` is any characters, `?` is one."""
    if not one or not other:
        return set(one + other) <= {"*"}
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    if other[0] == "*":
        return overlap(one, other[1:]) or overlap(one[1:], other)
    return (one[0] == other[0] or "?" in (one[0], other[0])) and overlap(one[1:], other[1:])


def _resource_of(pattern: str) -> str:
    return pattern.split(":", 5)[5]
