from pathlib import Path

import pytest

from local.fingerprint import fingerprint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "cdk.json",
        "infra/app.py",
        "functions/worker/handler.py",
        "layers/core/python/duetime/job.py",
    ):
        write(tmp_path / name, "first")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("source", ["cdk.json", "functions/worker/handler.py", "requirements/dev.txt"])
def test_it_changes_with_a_source(root: Path, source: str) -> None:
    before = fingerprint(root)
    write(root / source, "second")
    assert fingerprint(root) != before


def test_it_changes_when_a_file_moves(root: Path) -> None:
    before = fingerprint(root)
    (root / "infra/app.py").rename(root / "infra/main.py")
    assert fingerprint(root) != before


@pytest.mark.parametrize(
    "leftover",
    [
        "functions/worker/__pycache__/handler.cpython-311.pyc",
        "infra/cdk-cli/node_modules/aws-cdk/package.json",
        "layers/core/python/duetime.egg-info/PKG-INFO",
        "layers/.DS_Store",
        "docs/design.md",
    ],
)
def test_it_stays_when_a_tool_leaves_something_behind(root: Path, leftover: str) -> None:
    before = fingerprint(root)
    write(root / leftover, "anything")
    assert fingerprint(root) == before


def test_it_stays_when_only_the_time_of_a_file_changes(root: Path) -> None:
    before = fingerprint(root)
    write(root / "cdk.json", "first")
    assert fingerprint(root) == before
