from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.nag import NO_TLS_THERE, acknowledge
from infra.environments import Retention


class SpillBucket(s3.Bucket):
    """Logs and results that are too large for DynamoDB. Written once, read by presigned URL, gone after a while."""

    def __init__(
        self, scope: Construct, construct_id: str, *, keep_data: bool, tls_only: bool, retention: Retention
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=tls_only,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            # Not versioned: an object is never overwritten, and one that has expired must really be gone.
            lifecycle_rules=[
                _expire("logs/", retention.run_log_days),
                _expire("results/", retention.run_result_days),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            ],
            removal_policy=RemovalPolicy.RETAIN if keep_data else RemovalPolicy.DESTROY,
        )
        if not tls_only:
            acknowledge(self, "AwsSolutions-S10", NO_TLS_THERE)
        acknowledge(
            self,
            "AwsSolutions-S1",
            "Objects are reached only through presigned URLs that job_search hands out to the owner, and "
            "the API's access log names who asked; a second bucket of access logs would repeat it.",
        )


def _expire(prefix: str, days: int) -> s3.LifecycleRule:
    return s3.LifecycleRule(id=prefix.rstrip("/"), prefix=prefix, expiration=Duration.days(days))
