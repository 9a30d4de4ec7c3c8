"""From the ARNs that an environment allows to the worker's grants: what a task may be told to reach, the worker may
reach, and nothing else."""

from collections.abc import Iterable

from duetime.arns import matches

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
}


def service_of(pattern: str) -> str:
    parts = pattern.split(":")
    return parts[2] if len(parts) >= 6 and parts[0] == "arn" else ""


def is_grantable(pattern: str) -> str | None:
    if service_of(pattern) in ACTIONS:
        return None
    return f"a list of ARN patterns, each of one service: {', '.join(sorted(ACTIONS))}"


def reaches_duetime(pattern: str, environment: str) -> bool:
    """Whether a pattern covers a function, queue, topic or role of the stack itself. A task that could invoke
    job_service with an event of its own making would be anybody."""
    own = f"duetime-{environment}-x"
    resource = pattern.split(":", 5)[5]
    return any(matches(each, resource) for each in (f"function:{own}", own, f"role/{own}"))


def by_service(patterns: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pattern in sorted(set(patterns)):
        found.setdefault(service_of(pattern), []).append(pattern)
    return found
