"""What other people's rules say about the templates."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from aws_cdk import aws_sqs as sqs

from tests.infra.conftest import Synthesised, synthesise


def test_cdk_nag_finds_nothing_that_is_not_acknowledged(synthesised: Synthesised) -> None:
    assert synthesised.nag_findings == []


def test_cdk_nag_would_find_what_is_wrong() -> None:
    def spoil(stack: Any) -> None:
        sqs.Queue(stack, "Bad")

    assert ("AwsSolutions-SQS4", "duetime-dev/Bad/Resource") in synthesise("dev", spoil).nag_findings


# CDK makes every function wait for its role, which the reference to it already does: twice said, not wrong.
SAID_TWICE = "W3005"
# The emulator wants sqs:SendMessageBatch by name, an action that AWS does not have.
ACTION_OF_THE_EMULATOR = "W3037"


def test_cfn_lint_finds_nothing(synthesised: Synthesised) -> None:
    lint = Path(sys.executable).with_name("cfn-lint")
    accepted = [SAID_TWICE, *([ACTION_OF_THE_EMULATOR] if synthesised.environment.is_local else [])]
    choices = ["--non-zero-exit-code", "warning", "--ignore-checks", *accepted]
    command = [str(lint), *choices, "--", str(synthesised.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
