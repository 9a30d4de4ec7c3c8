"""The IAM user that people and tests sign as, so that the operator policy is proven by being used."""

from contextlib import suppress
from dataclasses import dataclass

from local.aws import root_client

OPERATOR = "duetime-local-operator"


@dataclass(frozen=True)
class AccessKey:
    access_key_id: str
    secret_access_key: str


def ensure_operator(endpoint_url: str, policy_arn: str, known: AccessKey | None) -> AccessKey:
    """The known key if the emulator still knows it too: tools that read it earlier must keep working."""
    iam = root_client("iam", endpoint_url)
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_user(UserName=OPERATOR)
    iam.attach_user_policy(UserName=OPERATOR, PolicyArn=policy_arn)
    keys = {key["AccessKeyId"] for key in iam.list_access_keys(UserName=OPERATOR)["AccessKeyMetadata"]}
    if known and known.access_key_id in keys:
        return known
    for forgotten in keys:
        iam.delete_access_key(UserName=OPERATOR, AccessKeyId=forgotten)
    created = iam.create_access_key(UserName=OPERATOR)["AccessKey"]
    return AccessKey(created["AccessKeyId"], created["SecretAccessKey"])
