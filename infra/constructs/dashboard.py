from collections.abc import Iterable, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.dashboard.section import FULL_WIDTH, Section

GUIDE = """# Duetime, {environment}
From top to bottom, the path of a job: **in → waiting → due → queued → running → done**, and beside it **dead**. \
Find the first station that looks unlike yesterday (three hours are shown; choose more above): the cause is there, or \
just before. Every graph is in steps of 5 minutes; a red line is where an alarm rings. What each alarm means, and what \
to do: `docs/operations.md`."""
GUIDE_HEIGHT = 3
# Five names side by side.
ALARMS_HEIGHT = 8


class JobPathDashboard(cloudwatch.Dashboard):
    """The alarms on top, and below them the stations of a job's path, in order."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        alarms: Sequence[cloudwatch.IAlarm],
        sections: Iterable[Section],
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            dashboard_name=f"duetime-{environment}",
            default_interval=Duration.hours(3),
            period_override=cloudwatch.PeriodOverride.INHERIT,
        )
        guide = cloudwatch.TextWidget(
            markdown=GUIDE.format(environment=environment), width=FULL_WIDTH, height=GUIDE_HEIGHT
        )
        states = cloudwatch.AlarmStatusWidget(
            title="Alarms", alarms=list(alarms), width=FULL_WIDTH, height=ALARMS_HEIGHT
        )
        self.add_widgets(guide)
        self.add_widgets(states)
        for section in sections:
            for row in section.rows():
                self.add_widgets(*row)
