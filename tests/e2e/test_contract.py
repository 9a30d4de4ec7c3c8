"""The deployed API does what its served document says, whatever it is sent: no 5xx, no undocumented answer, no accepted
invalid input. Schemathesis makes the requests, valid and invalid ones, from the document itself."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from duetime_client import Client
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from openapi.document import PATH
from tests.e2e.conftest import Account, a_request

DOCUMENT = json.loads(PATH.read_text())
# Not whether valid input is accepted: that a cron expression can be kept, or that a task's target is allowed, no
# schema can say.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    missing_required_header,
]
# Every request here is signed; that unsigned ones are refused is test_tenancy.py's.
schema = schemathesis.openapi.from_dict({name: DOCUMENT[name] for name in DOCUMENT if name != "security"})


class Signed(requests.auth.AuthBase):
    def __init__(self, credentials: Credentials, region: str) -> None:
        self._signer = SigV4Auth(credentials, "execute-api", region)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        unsigned = AWSRequest(
            method=request.method, url=request.url, data=request.body, headers=dict(request.headers)
        )
        self._signer.add_auth(unsigned)
        request.headers.update(dict(unsigned.headers))
        return request


@pytest.fixture(scope="module")
def tester(account: Account) -> Iterator[Credentials]:
    """An owner of its own, whose jobs are cancelled in the end: some call hosts that do not exist, again and again."""
    user = account.user_with(account.output("OperatorPolicyArn"))
    yield user
    client = account.client_of(user)
    for status in ("SCHEDULED", "PAUSED", "running"):
        token = None
        while True:
            page = client.change_jobs("cancel", {"status": status}, page_token=token)
            if (token := page["next_page_token"]) is None:
                break
    for run in client.list_executions(limit=100)["items"]:
        client.cancel_run(run["job_id"], run["run_id"])


@pytest.fixture(scope="module")
def served(client: Client) -> Any:
    return client.get_contract()


def test_the_document_that_is_served_is_the_one_that_is_committed(served: Any) -> None:
    assert served == DOCUMENT


@pytest.fixture(scope="module")
def real_ids(account: Account, tester: Credentials) -> Callable[[str], dict[str, str]]:
    """So that not every request ends at 404: a job for each operation, since some end it, with a run."""
    client = account.client_of(tester)

    @cache
    def ids(operation: str) -> dict[str, str]:
        job_id = client.create_job(a_request(schedule_type="CRON", frequency="yearly"))["job_id"]
        return {"job_id": job_id, "run_id": client.run_job_now(job_id)["run_id"]}

    return ids


@schema.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    # A failing request is told as it is: to shrink it would take hundreds more.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_documented(
    case: schemathesis.Case[Any],
    served: Any,
    stack: dict[str, str],
    tester: Credentials,
    real_ids: Callable[[str], dict[str, str]],
) -> None:
    assert served
    is_valid = case.meta is not None and case.meta.generation.mode is schemathesis.GenerationMode.POSITIVE
    if is_valid and case.path_parameters:
        known = real_ids(case.operation.label)
        case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
    session = requests.Session()
    case.call_and_validate(
        base_url=stack["api_url"],
        session=session,
        auth=Signed(tester, stack["region"]),
        checks=CHECKS,
        timeout=timedelta(seconds=30).total_seconds(),
    )
