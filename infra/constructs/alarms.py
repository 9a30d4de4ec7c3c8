from collections.abc import Iterable

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarms.rule import Rule

RUNBOOK = "docs/operations.md"


class Alarms(Construct):
    """One alarm per rule, which tells the topic when it begins and when it is over."""

    def __init__(
        self, scope: Construct, construct_id: str, *, prefix: str, rules: Iterable[Rule], topic: sns.ITopic
    ) -> None:
        super().__init__(scope, construct_id)
        self._tell = actions.SnsAction(topic)
        self.by_name = {rule.name: self._alarm(rule, prefix) for rule in rules}

    def _alarm(self, rule: Rule, prefix: str) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.title() for word in rule.name.replace("_", "-").split("-")),
            alarm_name=f"{prefix}-{rule.name}",
            alarm_description=f"{rule.means} What to do: {RUNBOOK}#{rule.entry}",
            metric=rule.metric,
            threshold=rule.threshold,
            comparison_operator=rule.comparison,
            evaluation_periods=rule.periods,
            datapoints_to_alarm=rule.periods,
            treat_missing_data=rule.missing,
        )
        alarm.add_alarm_action(self._tell)
        alarm.add_ok_action(self._tell)
        return alarm
