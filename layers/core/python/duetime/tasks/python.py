"""The `python` task: a function that the team ships in a layer, called as `function(payload, duetime)`.

It runs in a process of its own. So its time limit is enforced, a crash is one run's failure, and a busy loop does
not starve the worker's other threads.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.targets import AllowedTargets
from duetime.tasks.attempt import AttemptContext, refuse_unknown

RESULT_LIMIT_BYTES: Final = 32 * 1024
_REFERENCE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_STDERR_KEPT: Final = 2000


@dataclass(frozen=True, slots=True)
class PythonTask:
    function: str

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "PythonTask":
        refuse_unknown(settings, {"function"})
        function = settings.get("function")
        if not isinstance(function, str) or len(function) > 256 or not _REFERENCE.fullmatch(function):
            raise InvalidField("task.function", "must be module:function, such as payouts.daily:run")
        return cls(function)

    def check(self, allowed: AllowedTargets) -> None:
        allowed.check_python_function(self.function)

    def execute(self, context: AttemptContext, allowed: AllowedTargets) -> Any:  # noqa: ARG002
        call = {"function": self.function, "payload": context.payload, "duetime": context.as_object()}
        answer = _call_in_child(json.dumps(call), context.timeout_seconds)
        if answer["outcome"] == "succeeded":
            return answer["result"]
        kind = PermanentFailure if answer["outcome"] == "permanent" else TransientFailure
        raise kind(str(answer["error"]))


def _call_in_child(call: str, timeout_seconds: int) -> dict[str, Any]:
    # A session of its own, so that whatever the function starts can be ended with it.
    with subprocess.Popen(
        [sys.executable, "-m", "duetime.tasks.python_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    ) as child:
        try:
            answer, errors = child.communicate(call, timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise TransientFailure(
                f"the function did not end within {timeout_seconds} s and was stopped"
            ) from None
    if child.returncode != 0 or not answer:
        tail = errors[-_STDERR_KEPT:].strip()
        raise TransientFailure(f"the function's process ended with code {child.returncode}: {tail}")
    decoded: dict[str, Any] = json.loads(answer)
    return decoded
