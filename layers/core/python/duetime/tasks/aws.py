"""What the tasks that call AWS have in common."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from duetime.errors import PermanentFailure, TransientFailure

_CONNECT_SECONDS: Final = 5
# Not now, but perhaps later. Everything else that is the caller's fault stays so.
_TRANSIENT: Final = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "LimitExceededException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "InternalError",
        "InternalErrorException",
        "InternalFailure",
        "InternalServerError",
        "InternalServerException",
        "ServiceException",
        "ServerException",
        "KMSThrottling",
        "KmsThrottled",
        "ResourceNotReadyException",
        "EC2ThrottledException",
        "ENILimitReachedException",
        "CapacityProviderException",
    }
)


@lru_cache(maxsize=64)
def client(service: str, region: str | None = None, read_seconds: int = 30) -> Any:
    """Tried once: a run's retries are its own, each with its attempt on record, and a call that timed out may have been
    carried out."""
    config = Config(
        connect_timeout=_CONNECT_SECONDS, read_timeout=read_seconds, retries={"total_max_attempts": 1}
    )
    return boto3.client(service, region_name=region, config=config)


def call(operation: Callable[..., Any], **parameters: Any) -> Any:
    """Tells passing failures from lasting ones."""
    try:
        return operation(**parameters)
    except ClientError as error:
        code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        if code in _TRANSIENT or status >= 500:
            raise TransientFailure(f"{code}: {message}") from error
        raise PermanentFailure(f"{code}: {message}") from error
    except BotoCoreError as error:
        raise TransientFailure(f"{type(error).__name__}: {error}") from error
