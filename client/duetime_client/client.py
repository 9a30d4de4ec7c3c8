"""Signed calls to a Duetime deployment, one method a route."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3.exceptions import HTTPError

Json = dict[str, Any]


class ApiError(Exception):
    """The API refused or failed. `problem` is its RFC 9457 answer, where it gave one."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        detail = problem.get("detail") or problem.get("message") or "no further detail"
        super().__init__(f"the API answered {status}: {detail}")
        self.status = status
        self.problem = problem


class Unreachable(Exception):
    """No answer came. The request may or may not have been carried out: repeat it with its Idempotency-Key."""


class Client:
    def __init__(self, api_url: str, region: str, credentials: Credentials | None) -> None:
        """Without credentials nothing is signed, and the API refuses: that is for tests."""
        self._api_url = api_url.rstrip("/")
        self._region = region
        self._credentials = credentials
        self._http = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5, read=35))

    @classmethod
    def from_stack_file(cls, path: str | Path) -> "Client":
        stack = json.loads(Path(path).read_text())
        credentials = Credentials(stack["access_key_id"], stack["secret_access_key"])
        return cls(stack["api_url"], stack["region"], credentials)

    def create_job(self, job: Mapping[str, Any], *, idempotency_key: str | None = None) -> Json:
        return self.call("POST", "/jobs", body=job, headers=_idempotent(idempotency_key))

    def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Json:
        """Up to 100; each has an outcome of its own."""
        return self.call(
            "POST", "/jobs/batch", body={"jobs": list(jobs)}, headers=_idempotent(idempotency_key)
        )

    def change_jobs(
        self, action: str, jobs: Mapping[str, Any], *, limit: int | None = None, page_token: str | None = None
    ) -> Json:
        """`pause`, `resume` or `cancel` one page of what a filter finds."""
        page = {"limit": limit, "page_token": page_token}
        given = {name: value for name, value in page.items() if value is not None}
        return self.call("POST", "/jobs/bulk", body={"action": action, "filter": dict(jobs)} | given)

    def list_jobs(self, **filters: Any) -> Json:
        """status, schedule_type, priority, tag, name_prefix, due_from, due_before, user_id, limit, page_token."""
        return self.call("GET", "/jobs", query=filters)

    def get_job(self, job_id: str) -> Json:
        return self.call("GET", _job(job_id))

    def update_job(self, job_id: str, changes: Mapping[str, Any], *, if_match: int | None = None) -> Json:
        return self.call("PUT", _job(job_id), body=changes, headers=_matching(if_match))

    def pause_job(self, job_id: str, *, if_match: int | None = None) -> Json:
        return self.call("POST", _job(job_id, "pause"), headers=_matching(if_match))

    def resume_job(self, job_id: str, *, if_match: int | None = None) -> Json:
        return self.call("POST", _job(job_id, "resume"), headers=_matching(if_match))

    def cancel_job(self, job_id: str, *, if_match: int | None = None) -> Json:
        return self.call("DELETE", _job(job_id), headers=_matching(if_match))

    def run_job_now(self, job_id: str, *, idempotency_key: str | None = None) -> Json:
        return self.call("POST", _job(job_id, "runNow"), headers=_idempotent(idempotency_key))

    def get_status(self, job_id: str) -> Json:
        return self.call("GET", _job(job_id, "status"))

    def list_runs(self, job_id: str, **filters: Any) -> Json:
        """status, due_from, due_before, limit, page_token."""
        return self.call("GET", _job(job_id, "runs"), query=filters)

    def list_events(self, job_id: str, **page: Any) -> Json:
        return self.call("GET", _job(job_id, "events"), query=page)

    def explain(self, job_id: str, at: str) -> Json:
        return self.call("GET", _job(job_id, "explain"), query={"at": at})

    def list_executions(self, **filters: Any) -> Json:
        """worker_id, user_id, limit, page_token."""
        return self.call("GET", "/executions", query=filters)

    def get_health(self) -> Json:
        return self.call("GET", "/health")

    def get_contract(self) -> Json:
        return self.call("GET", "/openapi.json")

    def get_run(self, job_id: str, run_id: str) -> Json:
        return self.call("GET", _job(job_id, "runs", run_id))

    def cancel_run(self, job_id: str, run_id: str) -> Json:
        return self.call("POST", _job(job_id, "runs", run_id, "cancel"))

    def redrive_run(self, job_id: str, run_id: str) -> Json:
        return self.call("POST", _job(job_id, "runs", run_id, "redrive"))

    def get_logs(
        self,
        job_id: str,
        *,
        run_id: str | None = None,
        attempt: int | None = None,
        since: str | None = None,
        tail: int | None = None,
    ) -> Json:
        asked = {"run_id": run_id, "attempt": attempt, "since": since, "tail": tail}
        return self.call("GET", _job(job_id, "logs"), query=asked)

    def list_dead_letters(
        self, *, job_id: str | None = None, limit: int | None = None, page_token: str | None = None
    ) -> Json:
        asked = {"job_id": job_id, "limit": limit, "page_token": page_token}
        return self.call("GET", "/dead-letters", query=asked)

    def redrive_dead_letters(
        self, *, job_id: str | None = None, limit: int | None = None, page_token: str | None = None
    ) -> Json:
        asked = {"job_id": job_id, "limit": limit, "page_token": page_token}
        body = {name: value for name, value in asked.items() if value is not None}
        return self.call("POST", "/dead-letters/redrive", body=body)

    def report_heartbeat(self, job_id: str, run_id: str, token: str, *, checkpoint: Any = None) -> Json:
        """Of work that goes on elsewhere; the answer says whether its cancellation was asked for."""
        body = {} if checkpoint is None else {"checkpoint": checkpoint}
        return self.call(
            "POST", _job(job_id, "runs", run_id, "heartbeat"), body=body, headers=_speaking(token)
        )

    def report_completion(self, job_id: str, run_id: str, token: str, *, result: Any = None) -> Json:
        path = _job(job_id, "runs", run_id, "complete")
        return self.call("POST", path, body={"result": result}, headers=_speaking(token))

    def report_failure(self, job_id: str, run_id: str, token: str, error: str, *, retry: bool = True) -> Json:
        path = _job(job_id, "runs", run_id, "fail")
        return self.call("POST", path, body={"error": error, "retry": retry}, headers=_speaking(token))

    def get_upcoming(self, job_id: str, *, count: int | None = None) -> Json:
        return self.call("GET", _job(job_id, "upcoming"), query={"count": count})

    def preview_schedule(self, schedule: Mapping[str, Any]) -> Json:
        return self.call("POST", "/schedules/preview", body=schedule)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Any route, signed; the other methods are short for it."""
        data = None if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        given = {name: value for name, value in (query or {}).items() if value is not None}
        # As the signature wants it: a space is %20, and a slash %2F.
        asked = urlencode(given, safe="", quote_via=quote)
        url = self._api_url + path + (f"?{asked}" if asked else "")
        request = AWSRequest(method, url, data=data, headers=sent)
        if self._credentials:
            SigV4Auth(self._credentials, "execute-api", self._region).add_auth(request)
        try:
            answer = self._http.request(method, request.url, body=data, headers=dict(request.headers.items()))
        except HTTPError as error:
            raise Unreachable(f"{self._api_url} did not answer: {error}") from error
        return _decoded(answer)


def _job(job_id: str, *rest: str) -> str:
    return "/".join(["/jobs", *(quote(part, safe="") for part in (job_id, *rest))])


def _matching(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _speaking(token: str) -> dict[str, str]:
    return {"Duetime-Callback-Token": token}


def _idempotent(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def _decoded(answer: urllib3.BaseHTTPResponse) -> Json:
    try:
        content = json.loads(answer.data)
    except ValueError:
        content = {"detail": answer.data.decode("utf-8", "replace")}
    if answer.status >= 400:
        raise ApiError(answer.status, content if isinstance(content, dict) else {"detail": str(content)})
    decoded: Json = content
    return decoded
