"""Blobs in S3, read by presigned URL."""

from functools import cached_property
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PRESIGNING: Final = Config(
    signature_version="s3v4", connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2}
)
"""Version 4 signatures, whatever the region. What is put here, a log or a large result, can be done without; whoever
puts it holds a lease, or has a caller waiting, and does not wait long."""

_VALID_SECONDS: Final = 3600


class S3Blobs:
    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, content: bytes, content_type: str) -> None:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=content, ContentType=content_type)

    def url(self, key: str) -> str:
        return self._client.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=_VALID_SECONDS
        )


class LazyS3Blobs:
    """The same for functions that hardly ever need it: the client is made when it is first used."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def put(self, key: str, content: bytes, content_type: str) -> None:
        self._blobs.put(key, content, content_type)

    def url(self, key: str) -> str:
        return self._blobs.url(key)

    @cached_property
    def _blobs(self) -> S3Blobs:
        return S3Blobs(boto3.client("s3", config=PRESIGNING), self._bucket)
