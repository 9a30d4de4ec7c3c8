from collections.abc import Iterable

from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.parts import Parts
from infra.saved_queries import ACCESS_LOG, SavedQuery


class SavedQueries(Construct):
    """In the console under CloudWatch, Logs Insights, Queries, in a folder named like the stack."""

    def __init__(
        self, scope: Construct, construct_id: str, *, parts: Parts, queries: Iterable[SavedQuery]
    ) -> None:
        super().__init__(scope, construct_id)
        groups = {name: function.log_group for name, function in parts.functions.items()}
        groups[ACCESS_LOG] = parts.access_log
        for query in queries:
            logs.CfnQueryDefinition(
                self,
                query.name.title().replace("-", ""),
                name=f"duetime-{parts.environment}/{query.name}",
                query_string=query.text,
                log_group_names=[groups[name].log_group_name for name in query.logs_among(parts.functions)],
            )
