"""Each function, imported with nothing but its layers and the runtime's boto3 on the path: a dependency that is
missing from the layer cannot hide behind what this machine happens to have installed."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from infra.app import ROOT
from tests.infra.conftest import Synthesised
from tests.infra.test_functions import FUNCTIONS

RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
REPORT_IMPORTS = """
import importlib, json, sys
sys.path[:] = [*json.loads(sys.argv[1]), *sys.path]
module = importlib.import_module("handler")
assert callable(module.handle)
files = {name: getattr(found, "__file__", None) or "" for name, found in list(sys.modules.items())}
print(json.dumps(files))
"""


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages that the Lambda runtime brings, and no others."""
    folder = tmp_path_factory.mktemp("runtime")
    for package in RUNTIME_PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
    return folder


def path_of(name: str, runtime: Path) -> list[Path]:
    layers = [
        ROOT / "layers" / "core" / "python",
        ROOT / "build" / "layers" / "host" / "dependencies" / "python",
    ]
    if name in ("worker", "job_service", "watcher"):
        layers.append(ROOT / "layers" / "tasks" / "python")
    return [ROOT / "functions" / name, *layers, runtime]


def variables_of(synthesised: Synthesised, name: str) -> dict[str, str]:
    given: dict[str, Any] = synthesised.function(name)["Environment"]["Variables"]
    queues = json.dumps(dict.fromkeys(("high", "medium", "low"), "https://sqs.example.com/1/q"))
    wakeups = json.dumps(dict.fromkeys(("group", "role_arn", "queue_arn", "dead_letter_queue_arn"), "x"))
    stand_in = {name: queues if name.endswith("QUEUE_URLS") else "stand-in" for name in given}
    stand_in["DUETIME_WAKEUPS"] = wakeups
    literal = {name: value for name, value in given.items() if isinstance(value, str)}
    return stand_in | literal | {"AWS_DEFAULT_REGION": "us-east-1"}


def imports_of(synthesised: Synthesised, name: str, path: list[Path]) -> dict[str, str]:
    done = subprocess.run(
        # Isolated, and without site-packages.
        [sys.executable, "-I", "-S", "-c", REPORT_IMPORTS, json.dumps([str(folder) for folder in path])],
        env=variables_of(synthesised, name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files: dict[str, str] = json.loads(done.stdout)
    return files


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_finds_all_its_imports_in_its_layers(prod: Synthesised, runtime: Path, name: str) -> None:
    files = imports_of(prod, name, path_of(name, runtime))
    site_packages = [file for file in files.values() if "site-packages" in file]
    assert site_packages == []
    assert "duetime.settings" in files


@pytest.mark.parametrize("name", ["enqueuer", "status_feed", "watcher", "worker", "notifier"])
def test_the_functions_on_a_jobs_path_do_without_pydantic(
    prod: Synthesised, runtime: Path, name: str
) -> None:
    files = imports_of(prod, name, path_of(name, runtime))
    assert [module for module in files if module.split(".")[0] == "pydantic"] == []


def test_a_missing_dependency_would_be_seen(prod: Synthesised, runtime: Path) -> None:
    path = [folder for folder in path_of("job_service", runtime) if "dependencies" not in folder.parts]
    with pytest.raises(AssertionError, match="No module named 'aws_lambda_powertools'"):
        imports_of(prod, "job_service", path)
