"""One enum, one table, one diagram: this checks that the three agree."""

import re
from enum import StrEnum
from pathlib import Path

import pytest
from duetime.errors import IllegalTransition
from duetime.status import JOB_TRANSITIONS, RUN_TRANSITIONS, JobStatus, RunStatus

from tests.factories import a_job, a_run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "states.md").read_text()


def drawn(heading: str) -> set[tuple[str, str]]:
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^    (\w+) --> (\w+)", section, re.M))


@pytest.mark.parametrize(("heading", "table"), [("A job", JOB_TRANSITIONS), ("A run", RUN_TRANSITIONS)])
def test_the_diagram_shows_the_table(heading: str, table: dict[StrEnum, frozenset[StrEnum]]) -> None:
    assert drawn(heading) == {(str(start), str(end)) for start, ends in table.items() for end in ends}


@pytest.mark.parametrize(("statuses", "table"), [(JobStatus, JOB_TRANSITIONS), (RunStatus, RUN_TRANSITIONS)])
def test_every_status_is_in_the_table_and_in_the_document(
    statuses: type[StrEnum], table: dict[StrEnum, frozenset[StrEnum]]
) -> None:
    assert set(statuses) == set(table)
    assert [status for status in statuses if f"| `{status}` |" not in DOCUMENT] == []


def test_a_run_refuses_a_move_that_the_table_does_not_have() -> None:
    with pytest.raises(IllegalTransition, match="cannot go from QUEUED to SUCCEEDED"):
        a_run(a_job()).evolve(status=RunStatus.SUCCEEDED)


def test_a_job_refuses_a_move_that_the_table_does_not_have() -> None:
    with pytest.raises(IllegalTransition, match="cannot go from COMPLETED to SCHEDULED"):
        a_job(status=JobStatus.COMPLETED).evolve(status=JobStatus.SCHEDULED)
