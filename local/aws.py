"""boto3 clients for the emulator, deaf to whatever AWS settings the person has."""

import os
from typing import Any

ACCOUNT = "000000000000"
REGION = "us-east-1"
# MiniStack's root user. It skips the signature check, so it deploys and creates users, and does nothing else.
ROOT_KEY = "test"


def root_client(service: str, endpoint_url: str) -> Any:
    import boto3
    import botocore.session
    from botocore.config import Config

    nothing = (None, None, os.devnull, None)
    deaf = {"profile": (None, None, None, None), "config_file": nothing, "credentials_file": nothing}
    return boto3.Session(botocore_session=botocore.session.Session(session_vars=deaf)).client(
        service,
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id=ROOT_KEY,
        aws_secret_access_key=ROOT_KEY,
        config=Config(proxies={}),
    )
