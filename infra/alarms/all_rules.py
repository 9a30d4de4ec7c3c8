from infra.alarms.edges import edge_rules
from infra.alarms.functions import function_rules
from infra.alarms.promises import promise_rules
from infra.alarms.queues import queue_rules
from infra.alarms.rule import Rule
from infra.environments import AlarmSettings
from infra.parts import Parts


def all_rules(parts: Parts, settings: AlarmSettings) -> list[Rule]:
    """First what owners of jobs notice, then why."""
    return [
        *promise_rules(parts.environment, settings),
        *queue_rules(parts, settings),
        *function_rules(parts, settings),
        *edge_rules(parts, settings),
    ]
