from constructs import Construct

from infra.alarms.all_rules import all_rules
from infra.constructs.alarm_topic import AlarmTopic
from infra.constructs.alarms import Alarms
from infra.constructs.dashboard import JobPathDashboard
from infra.constructs.saved_queries import SavedQueries
from infra.dashboard.arrival import arrival_sections
from infra.dashboard.machinery import machinery_section
from infra.dashboard.outcome import outcome_sections
from infra.environments import AlarmSettings
from infra.parts import Parts
from infra.saved_queries import QUERIES


class Monitoring(Construct):
    """Who is told when something is wrong, where they look, and what they ask."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        parts: Parts,
        settings: AlarmSettings,
        tls_only: bool,
        in_emulator: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        prefix = f"duetime-{parts.environment}"
        self.topic = AlarmTopic(
            self, "Alarms", name=prefix, recipients=settings.recipients, tls_only=tls_only
        )
        rules = all_rules(parts, settings)
        # The emulator's CloudFormation knows neither alarms on several metrics nor saved queries.
        known = [rule for rule in rules if not (in_emulator and rule.is_computed)]
        alarms = Alarms(self, "When", prefix=prefix, rules=known, topic=self.topic)
        JobPathDashboard(
            self,
            "Dashboard",
            environment=parts.environment,
            alarms=list(alarms.by_name.values()),
            sections=[
                *arrival_sections(parts, settings),
                *outcome_sections(parts, settings),
                machinery_section(parts),
            ],
        )
        if not in_emulator:
            SavedQueries(self, "Queries", parts=parts, queries=QUERIES)
