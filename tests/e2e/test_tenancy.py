"""Who may do what: every principal by every route of the served document, with IAM really enforced."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.credentials import Credentials
from duetime_client import ApiError, Client

from openapi.document import PATH
from tests.e2e.conftest import Account, a_request, wait_for

DOCUMENT = json.loads(PATH.read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
# Of another's: its jobs do not exist. Lists and what belongs to nobody are for all.
ABOUT_NOBODY = {
    "create_job",
    "create_jobs",
    "change_jobs",
    "list_jobs",
    "list_executions",
    "create_subscription",
    "list_subscriptions",
    "list_dead_letters",
    "redrive_many",
    "preview_times",
    "get_health",
    "get_contract",
}
READS = {name for name, (method, _, _) in OPERATIONS.items() if method == "GET"} | {"preview_times"}
# In the state that the job and its run are in when it is asked: the run has ended, so it is neither a dead letter nor
# under way, and no attempt has that token.
OF_THE_OWNER = {
    "redrive_run": 409,
    "report_heartbeat": 409,
    "report_completion": 409,
    "report_failure": 409,
    "create_job": 201,
    "create_subscription": 201,
    "run_job_now": 202,
    "cancel_run": 202,
}


SUBSCRIPTION = OPERATIONS["create_subscription"][2]["requestBody"]["content"]["application/json"]["example"]


@dataclass
class Scene:
    clients: dict[str, Client]
    job_id: str
    run_id: str

    def status(self, who: str, name: str) -> int:
        method, path, operation = OPERATIONS[name]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
        if name in ("create_job", "create_jobs"):
            body = a_request() if name == "create_job" else {"jobs": [a_request()]}
        if name == "redrive_many":
            body = {}
        if name == "change_jobs":
            body = {"action": "pause", "filter": {"tag": "nobody-has-this"}}
        query = {"at": "2026-11-18T07:00:00Z"} if name == "explain" else None
        headers = {"Duetime-Callback-Token": "x"} if name.startswith("report_") else {}
        path = path.replace("{job_id}", self.job_id).replace("{run_id}", self.run_id)
        if name == "delete_subscription":
            made = self.clients["owner"].call("POST", "/subscriptions", body=SUBSCRIPTION)
            path = path.replace("{subscription_id}", made["subscription_id"])
            query = {"user_id": made["owner"]} if who == "admin" else None
        try:
            answer = self.clients[who].call(method, path, body=body, query=query, headers=headers)
        except ApiError as error:
            return error.status
        assert isinstance(answer, dict)
        success: str = next(iter(operation["responses"]))
        return int(success)


@pytest.fixture(scope="module")
def scene(account: Account, stack: dict[str, str]) -> Scene:
    policies = {name: account.output(f"{name}PolicyArn") for name in ("Viewer", "Operator", "Admin")}
    owner = account.client_with(policies["Operator"])
    job_id = owner.create_job(a_request(schedule_type="CRON", frequency="yearly"))["job_id"]
    run_id = owner.run_job_now(job_id)["run_id"]
    wrong = Credentials(stack["access_key_id"], "not-the-secret-of-this-key")
    clients = {
        "nobody": Client(stack["api_url"], stack["region"], None),
        "a bad signature": Client(stack["api_url"], stack["region"], wrong),
        "no policy": account.client_with(),
        "viewer": account.client_with(policies["Viewer"]),
        "another operator": account.client_with(policies["Operator"]),
        "admin": account.client_with(policies["Admin"], name="e2e-admin"),
        "owner": owner,
    }
    return Scene(clients, job_id, run_id)


def expected(who: str, name: str) -> int:
    if who in ("nobody", "a bad signature", "no policy"):
        return 403
    if who == "viewer" and name not in READS:
        return 403
    if who in ("viewer", "another operator") and name not in ABOUT_NOBODY:
        return 404
    return OF_THE_OWNER.get(name, 200)


# Those that end the job come last.
ORDER = sorted(OPERATIONS, key=lambda name: (name in ("cancel_run", "cancel_job"), name == "cancel_job"))
PRINCIPALS = ["nobody", "a bad signature", "no policy", "viewer", "another operator", "admin", "owner"]


@pytest.mark.parametrize("name", [name for name in ORDER if name != "cancel_job"])
def test_every_principal_by_every_route(scene: Scene, name: str) -> None:
    if name == "redrive_run":
        # Its run must have ended.
        owner = scene.clients["owner"]
        wait_for(lambda: owner.get_run(scene.job_id, scene.run_id)["status"] == "SUCCEEDED")
    got = {who: scene.status(who, name) for who in PRINCIPALS}
    assert got == {who: expected(who, name) for who in PRINCIPALS}


def test_cancelling_a_job_is_its_owners_and_the_admins(scene: Scene) -> None:
    got = {who: scene.status(who, "cancel_job") for who in PRINCIPALS}
    assert got == {who: expected(who, "cancel_job") for who in PRINCIPALS}


class TestLists:
    def test_others_jobs_are_in_no_list(self, scene: Scene) -> None:
        mine = scene.clients["another operator"].list_jobs(limit=100)["items"]
        assert mine
        assert scene.job_id not in {job["job_id"] for job in mine}
        owner = scene.clients["owner"].get_job(scene.job_id)["owner"]
        assert scene.clients["another operator"].list_jobs(user_id=owner)["items"] == []

    def test_an_admin_sees_all_and_filters_by_owner(self, scene: Scene) -> None:
        owner = scene.clients["owner"].get_job(scene.job_id)["owner"]
        admin = scene.clients["admin"]
        theirs = admin.list_jobs(user_id=owner, limit=100)["items"]
        assert scene.job_id in {job["job_id"] for job in theirs}
        assert {job["owner"] for job in theirs} == {owner}
        seen, token = set(), None
        while True:
            page: dict[str, Any] = admin.list_jobs(limit=100, page_token=token)
            seen |= {job["owner"] for job in page["items"]}
            token = page["next_page_token"]
            if token is None:
                break
        assert len(seen) > 1
        assert owner in seen

    def test_a_page_token_is_of_use_to_nobody_else_and_for_nothing_else(self, scene: Scene) -> None:
        owner, other = scene.clients["owner"], scene.clients["another operator"]
        owner.create_jobs([a_request() for _ in range(3)])
        token = owner.list_jobs(limit=1)["next_page_token"]
        assert owner.list_jobs(limit=1, page_token=token)["items"]
        for who, path, query in (
            (other, "/jobs", {"page_token": token}),
            (owner, "/jobs", {"page_token": token, "status": "PAUSED"}),
            (owner, "/executions", {"page_token": token}),
            (owner, "/jobs", {"page_token": f"{token[:-2]}AA"}),
        ):
            with pytest.raises(ApiError) as caught:
                who.call("GET", path, query=query)
            assert (caught.value.status, caught.value.problem["errors"][0]["field"]) == (400, "page_token")
