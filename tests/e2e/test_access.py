"""Nobody touches what is not theirs, with IAM really enforced."""

from collections.abc import Callable

import pytest
import urllib3
from duetime_client import ApiError, Client

from tests.e2e.conftest import Account, a_request


@pytest.fixture(scope="module")
def job_id(client: Client) -> str:
    created: str = client.create_job(a_request())["job_id"]
    return created


def reads(client: Client, job_id: str) -> list[Callable[[], object]]:
    return [
        lambda: client.get_job(job_id),
        lambda: client.get_status(job_id),
        lambda: client.list_runs(job_id),
    ]


def status_of(call: Callable[[], object]) -> int:
    try:
        call()
    except ApiError as error:
        return error.status
    return 200


def test_an_unsigned_request_is_forbidden(stack: dict[str, str], job_id: str) -> None:
    stranger = Client(stack["api_url"], stack["region"], credentials=None)
    calls = [lambda: stranger.create_job(a_request()), *reads(stranger, job_id)]
    assert [status_of(call) for call in calls] == [403, 403, 403, 403]


def test_a_bearer_token_is_forbidden(stack: dict[str, str], job_id: str) -> None:
    answer = urllib3.request(
        "GET", f"{stack['api_url']}/jobs/{job_id}", headers={"Authorization": "Bearer anything"}
    )
    assert answer.status == 403


def test_a_user_without_the_policy_is_forbidden(account: Account, job_id: str) -> None:
    user = account.client_with()
    calls = [lambda: user.create_job(a_request()), *reads(user, job_id)]
    assert [status_of(call) for call in calls] == [403, 403, 403, 403]


def test_a_viewer_reads_but_cannot_submit(account: Account, job_id: str) -> None:
    viewer = account.client_with(account.output("ViewerPolicyArn"))
    assert status_of(lambda: viewer.create_job(a_request())) == 403
    # It passes the gateway; that the job is another's is a 404, as for a job that does not exist.
    assert [status_of(call) for call in reads(viewer, job_id)] == [404, 404, 404]


def test_an_operator_sees_its_own_jobs_and_nobody_elses(account: Account, job_id: str) -> None:
    other = account.client_with(account.output("OperatorPolicyArn"))
    own = other.create_job(a_request())["job_id"]
    assert [status_of(call) for call in reads(other, own)] == [200, 200, 200]
    assert [status_of(call) for call in reads(other, job_id)] == [404, 404, 404]


def test_two_owners_can_use_the_same_idempotency_key(account: Account, client: Client) -> None:
    other = account.client_with(account.output("OperatorPolicyArn"))
    jobs = {who.create_job(a_request(), idempotency_key="e2e-shared")["job_id"] for who in (client, other)}
    assert len(jobs) == 2


def test_bad_input_is_a_problem_that_names_the_field(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        client.create_job(a_request(priority="urgent"))
    assert caught.value.status == 400
    assert [error["field"] for error in caught.value.problem["errors"]] == ["priority"]
