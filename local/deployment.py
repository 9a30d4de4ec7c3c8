"""The stack inside the emulator, put there by the CDK CLI as it would be into AWS."""

import json
from typing import Any

from local.aws import ACCOUNT, REGION, ROOT_KEY, root_client
from local.cdk_cli import run_cdk
from local.emulator import Emulator
from local.errors import LocalStackError
from local.layout import Layout
from local.progress import Progress
from local.records import read_record, write_record
from local.warming import warm_functions

STACK_NAME = "duetime-local"


def deployed_outputs(layout: Layout, emulator: Emulator, fingerprint: str) -> dict[str, str] | None:
    """The outputs if these very sources are deployed in this very emulator process, which began empty."""
    record = read_record(layout.deployment_record) or {}
    if (record.get("token"), record.get("fingerprint")) != (emulator.token, fingerprint):
        return None
    outputs: dict[str, str] | None = record.get("outputs")
    return outputs


def deploy(layout: Layout, emulator: Emulator, fingerprint: str, progress: Progress) -> dict[str, str]:
    # One that fails half way leaves neither the old stack nor the new one, and no record may say otherwise.
    layout.deployment_record.unlink(missing_ok=True)
    with progress.step("Deploying it with the CDK CLI"):
        outputs = _run_deployment(layout, emulator)
    warm_functions(emulator.endpoint_url, progress)
    record = {"token": emulator.token, "fingerprint": fingerprint, "outputs": outputs}
    write_record(layout.deployment_record, record)
    return outputs


def _run_deployment(layout: Layout, emulator: Emulator) -> dict[str, str]:
    _create_asset_buckets(layout, emulator)
    outputs_file = layout.state / "outputs.json"
    outputs_file.unlink(missing_ok=True)
    run_cdk(
        layout,
        _arguments(layout, str(outputs_file)),
        layout.logs / "deploy.log",
        variables=_credentials(emulator),
        failure="The stack could not be deployed",
    )
    return _stack_outputs(read_record(outputs_file))


def _arguments(layout: Layout, outputs_file: str) -> list[str]:
    # A change set is a second round trip and a wait; there is nobody here to review it.
    choices = ["--method", "direct", "--require-approval", "never", "--outputs-file", outputs_file]
    return ["deploy", STACK_NAME, "--app", str(layout.assembly), *choices]


def _credentials(emulator: Emulator) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": emulator.endpoint_url,
        "AWS_ENDPOINT_URL_S3": emulator.endpoint_url,
        "AWS_ACCESS_KEY_ID": ROOT_KEY,
        "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
        "AWS_REGION": REGION,
    }


def _create_asset_buckets(layout: Layout, emulator: Emulator) -> None:
    """All that the assets need of `cdk bootstrap`, in a fraction of its time."""
    s3 = root_client("s3", emulator.endpoint_url)
    for name in sorted(_asset_buckets(layout)):
        s3.create_bucket(Bucket=name)


def _asset_buckets(layout: Layout) -> set[str]:
    manifests = [json.loads(path.read_text()) for path in layout.assembly.glob("*.assets.json")]
    destinations = [
        destination
        for manifest in manifests
        for file in manifest.get("files", {}).values()
        for destination in file["destinations"].values()
    ]
    return {_resolve(destination["bucketName"]) for destination in destinations}


def _resolve(name: str) -> str:
    return name.replace("${AWS::AccountId}", ACCOUNT).replace("${AWS::Region}", REGION)


def _stack_outputs(document: dict[str, Any] | None) -> dict[str, str]:
    outputs: dict[str, str] = (document or {}).get(STACK_NAME, {})
    missing = {"ApiId", "Region", "OperatorPolicyArn"} - outputs.keys()
    if missing:
        raise LocalStackError(f"The deployed stack has no output {', '.join(sorted(missing))}: see infra/.")
    return outputs
