"""Keys for everything that Duetime signs, all derived from one secret that the stack generates."""

import hashlib
import hmac
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duetime.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


class SigningKey:
    """The secret is read when it is first needed, and once: most invocations sign nothing."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read

    def derive(self, purpose: str) -> bytes:
        """A key of its own for each purpose: whoever learns one knows neither another nor the secret."""
        return hmac.digest(self._secret, purpose.encode(), hashlib.sha256)

    @cached_property
    def _secret(self) -> bytes:
        return self._read()


def key_in_secrets_manager(connect: "Callable[[], SecretsManagerClient]", arn: str) -> SigningKey:
    """`connect` makes the client, which is only worth its while once the key is needed."""

    def read() -> bytes:
        try:
            return connect().get_secret_value(SecretId=arn)["SecretString"].encode()
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key for what Duetime signs cannot be read") from error

    return SigningKey(read)
