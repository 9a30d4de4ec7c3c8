from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.nag import NO_TLS_THERE, acknowledge
from infra.environments import PRIORITIES

LONGEST_RETENTION = Duration.days(14)


class EncryptedQueue(sqs.Queue):
    """A standard queue, encrypted at rest with SQS's own key (no KMS call per message) and over TLS in transit."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tls_only: bool,
        visibility_timeout: Duration | None = None,
        retention_period: Duration | None = None,
        dead_letter_queue: sqs.DeadLetterQueue | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=tls_only,
            visibility_timeout=visibility_timeout,
            retention_period=retention_period,
            dead_letter_queue=dead_letter_queue,
        )
        if not tls_only:
            acknowledge(self, "AwsSolutions-SQS4", NO_TLS_THERE)


class RedrivenQueue(Construct):
    """A queue whose messages, after some deliveries in vain, wait two weeks on a dead-letter queue of its own."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        visibility_timeout: Duration,
        tls_only: bool,
        deliveries: int = 5,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = EncryptedQueue(
            self, "DeadLetters", retention_period=LONGEST_RETENTION, tls_only=tls_only
        )
        self.queue = EncryptedQueue(
            self,
            "Queue",
            tls_only=tls_only,
            visibility_timeout=visibility_timeout,
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=deliveries),
        )


class RunQueues(Construct):
    """One queue of hints per priority, so that a flood of low ones never stands before a high one."""

    def __init__(
        self, scope: Construct, construct_id: str, *, worker_timeout: Duration, tls_only: bool
    ) -> None:
        super().__init__(scope, construct_id)
        # Six times the function's timeout, as AWS advises: a throttled batch must not come back while it waits.
        hidden = Duration.seconds(6 * worker_timeout.to_seconds())
        self.by_priority = {
            priority: RedrivenQueue(self, priority.title(), visibility_timeout=hidden, tls_only=tls_only)
            for priority in PRIORITIES
        }


class StreamFailures(EncryptedQueue):
    """Where Lambda puts the position of stream records that a function could not process."""

    def __init__(self, scope: Construct, construct_id: str, *, tls_only: bool) -> None:
        super().__init__(scope, construct_id, retention_period=LONGEST_RETENTION, tls_only=tls_only)
        acknowledge(
            self,
            "AwsSolutions-SQS3",
            "This queue is itself the end of the line: the on-failure destination of the stream mapping.",
        )
