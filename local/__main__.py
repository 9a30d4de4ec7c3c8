"""`python -m local up | down | run`, which is what the make targets of these names call."""

import argparse
import signal
import sys
from types import FrameType

from local.errors import LocalStackError
from local.progress import Progress
from local.stack import ensure_up, take_down

INTERRUPTED = 130


def up() -> int:
    started = ensure_up()
    print(f"Duetime is up: {started.stack.api_url}")
    print("Keys for signing requests are in local/stack.json; `make down` stops it and forgets its data.")
    return 0


def down() -> int:
    print("Stopped the local stack." if take_down() else "The local stack is not up.")
    return 0


def run() -> int:
    from local.serve import serve

    return serve(Progress())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """A polite end is as good a reason to tidy up as Ctrl-C."""
    raise KeyboardInterrupt


COMMANDS = {"up": up, "down": down, "run": run}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local", description="Duetime on this machine.")
    parser.add_argument("command", choices=COMMANDS)
    try:
        return COMMANDS[parser.parse_args(arguments).command]()
    except LocalStackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(main())
