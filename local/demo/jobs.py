"""The demo's jobs: both task types, all priorities."""

from typing import Any

GREETING = "duetime_examples.greetings:greet"


def demo_jobs(listener_url: str) -> list[dict[str, Any]]:
    return [
        _greeting("Ada", "high"),
        _greeting("Grace", "medium"),
        _greeting("Edsger", "low"),
        _call("Settle the payments", listener_url, "/payments", "high"),
        _call("Refresh the catalogue", listener_url, "/catalogue", "medium"),
        _call("Send the newsletter", listener_url, "/newsletter", "low"),
    ]


def task_label(job: dict[str, Any]) -> str:
    task = job["task"]
    return f"python {task['function'].rpartition(':')[2]}" if task["type"] == "python" else "http POST"


def _greeting(name: str, priority: str) -> dict[str, Any]:
    task = {"type": "python", "function": GREETING}
    return _immediate(f"Greet {name}", task, {"name": name}, priority)


def _call(name: str, listener_url: str, path: str, priority: str) -> dict[str, Any]:
    task = {"type": "http", "method": "POST", "url": listener_url + path}
    return _immediate(name, task, {"from": "make run"}, priority)


def _immediate(name: str, task: dict[str, Any], payload: dict[str, Any], priority: str) -> dict[str, Any]:
    return {
        "name": name,
        "schedule_type": "IMMEDIATE",
        "task": task,
        "payload": payload,
        "priority": priority,
        "tags": ["demo"],
    }
