"""The `python` task: a function that the team ships in a layer, called as `function(payload, duetime)`.

It runs in a process of its own. So its time limit is enforced, it can be stopped, a crash is one run's failure, and a
busy loop does not starve the worker's heartbeat.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Final

from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.logbook import LINE_LENGTH
from duetime.targets import Reach
from duetime.tasks.fields import refuse_unknown
from duetime.tasks.interface import AttemptContext

_REFERENCE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PythonTask:
    function: str

    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "PythonTask":
        refuse_unknown(settings, {"function"})
        function = settings.get("function")
        if not isinstance(function, str) or len(function) > 256 or not _REFERENCE.fullmatch(function):
            raise InvalidField("task.function", "must be module:function, such as payouts.daily:run")
        return cls(function)

    def check(self, reach: Reach) -> None:
        reach.check_python(self.function)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        call = {"function": self.function, "payload": context.payload, "duetime": context.as_object()}
        answer = _call_in_child(json.dumps(call), context)
        if answer["outcome"] == "succeeded":
            return answer["result"]
        kind = PermanentFailure if answer["outcome"] == "permanent" else TransientFailure
        raise kind(str(answer["error"]))


def _call_in_child(call: str, context: AttemptContext) -> dict[str, Any]:
    """Standard output and error are the attempt's log. What the child says to us comes over a pipe of its own."""
    reading, writing = os.pipe()
    try:
        # A session of its own, so that whatever the function starts can be ended with it.
        child = subprocess.Popen(  # noqa: S603  (the command is ours; the function's name goes in by stdin)
            [sys.executable, "-m", "duetime.tasks.python_child", str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"},
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    with (
        child,
        os.fdopen(reading, encoding="utf-8") as said,
        context.stop.interrupting(lambda: _kill(child)),
    ):
        return _converse(child, call, said, context)


def _converse(
    child: subprocess.Popen[str], call: str, said: Iterable[str], context: AttemptContext
) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    log = threading.Thread(target=_copy_log, args=(child.stdout, context), daemon=True)
    log.start()
    reaper = threading.Thread(target=_reap, args=(child,), daemon=True)
    reaper.start()
    with suppress(BrokenPipeError):
        child.stdin.write(call)
        child.stdin.close()
    answer: dict[str, Any] | None = None
    for line in said:
        message = json.loads(line)
        if "checkpoint" in message:
            context.save_checkpoint(message["checkpoint"])
        else:
            answer = message
    reaper.join()
    log.join()
    code = child.returncode
    if code != 0 or answer is None:
        raise TransientFailure(f"the function's process ended with code {code} and no answer; see its log")
    return answer


def _copy_log(output: IO[str], context: AttemptContext) -> None:
    with suppress(ValueError):
        # A piece at a time: output without a line's end must not fill the worker's memory.
        while piece := output.readline(LINE_LENGTH):
            context.log(piece)


def _reap(child: subprocess.Popen[str]) -> None:
    """What the function has started ends with it; and as long as it lived, it would hold the pipes open."""
    child.wait()
    _kill(child)


def _kill(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
