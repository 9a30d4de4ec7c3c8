import os
import signal
import threading
from pathlib import Path

from duetime_client import Client

from local.stack import Up
from tests.e2e.conftest import Account, a_request, wait_for
from tests.listener import Answer, Received, listening


def worker_processes(up: Up, function_name: str) -> list[int]:
    """The emulator's own children that run that function, by the environment that it gave them."""
    marker = f"AWS_LAMBDA_FUNCTION_NAME={function_name}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if marker in variables and parent == up.emulator.pid:
            found.append(int(folder.name))
    return found


def is_running(pid: int) -> bool:
    """Not so for a zombie: the emulator collects a dead worker only when it next wants to use it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_killed_between_claim_and_finish_leaves_the_run_on_record(
    client: Client, account: Account, up: Up
) -> None:
    reached, release = threading.Event(), threading.Event()

    def hang(_: Received) -> Answer:
        reached.set()
        release.wait(60)
        return Answer()

    with listening(hang) as target:
        job_id = client.create_job(a_request(task={"type": "http", "url": target.url}))["job_id"]
        assert reached.wait(60)
        processes = worker_processes(up, account.output("WorkerFunctionName"))
        assert processes
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(is_running(pid) for pid in processes))
        release.set()

    status = client.get_status(job_id)
    run = status["latest_run"]
    assert (status["status"], run["status"], run["attempt"], run["attempts"]) == (
        "SCHEDULED",
        "RUNNING",
        1,
        [],
    )
    assert run["deadline_at"] > run["claimed_at"] >= run["due_at"]
    assert (run["fence"], bool(run["executor_id"])) == (1, True)
    assert client.get_job(job_id)["running"] == 1

    # The next job finds a new worker.
    other = client.create_job(a_request())["job_id"]
    wait_for(lambda: client.get_status(other)["latest_run"]["status"] == "SUCCEEDED")
