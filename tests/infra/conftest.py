"""The infra tier: the templates that the CDK app synthesises, one per environment, without network or credentials.
It proves what only the template can show: keys, grants, retention, and settings that the emulator ignores."""

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra.app import ROOT, add_stack
from infra.environments import Environment, read_environment

ENVIRONMENTS = ("local", "dev", "staging", "prod")
BLOCKS: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]["environments"]

Properties = dict[str, Any]


@dataclass(frozen=True)
class Synthesised:
    environment: Environment
    path: Path
    template: dict[str, Any]
    nag_findings: list[tuple[str, str]]

    def all(self, kind: str) -> dict[str, Properties]:
        return {
            logical_id: resource.get("Properties", {})
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def one(self, kind: str, named: str) -> tuple[str, Properties]:
        found = [item for item in self.all(kind).items() if item[0].startswith(named)]
        assert len(found) == 1, f"{kind} {named}: {[name for name, _ in found]}"
        return found[0]

    def function(self, name: str) -> Properties:
        return self.one("AWS::Lambda::Function", name.title().replace("_", ""))[1]

    def grants(self, role: str) -> set[tuple[str, str]]:
        """Every (action, resource) of every policy of that role; a resource is named by its logical id."""
        policies = [
            policy
            for policy in self.all("AWS::IAM::Policy").values()
            if any(attached["Ref"].startswith(role) for attached in policy["Roles"])
        ]
        return {
            (action, _resource_name(resource))
            for policy in policies
            for statement in policy["PolicyDocument"]["Statement"]
            for action in _listed(statement["Action"])
            for resource in _listed(statement["Resource"])
        }


def synthesise(
    name: str, change: Any = lambda stack: None, *, blocks: dict[str, Any] = BLOCKS
) -> Synthesised:
    environment = read_environment(name, blocks)
    folder = Path(mkdtemp(prefix="duetime-synth-"))
    app = App(analytics_reporting=False, outdir=str(folder))
    stack = add_stack(app, environment)
    change(stack)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    # With a finding, synthesis fails; the report says more than the error does.
    with suppress(RuntimeError):
        app.synth()
    path = folder / f"duetime-{name}.template.json"
    return Synthesised(environment, path, json.loads(path.read_text()), _findings(folder))


def _findings(folder: Path) -> list[tuple[str, str]]:
    report = json.loads((folder / "validation-report.json").read_text())
    return [
        (violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    ]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _resource_name(resource: Any) -> str:
    if isinstance(resource, str):
        return resource
    if "Fn::Join" in resource:
        return _joined_name(resource["Fn::Join"][1])
    logical_id: str
    logical_id, attribute = resource["Fn::GetAtt"]
    return logical_id if attribute == "Arn" else f"{logical_id}.{attribute}"


def _joined_name(parts: list[Any]) -> str:
    """An index by its table (`Table/index/name`), another ARN from behind its account on."""
    if isinstance(parts[0], dict):
        return "".join(part if isinstance(part, str) else _resource_name(part) for part in parts)
    shown = [part if isinstance(part, str) else part["Ref"] for part in parts]
    return "".join(shown).split("AWS::AccountId:", 1)[1]


@cache
def _once(name: str) -> Synthesised:
    return synthesise(name)


@pytest.fixture(params=ENVIRONMENTS)
def synthesised(request: pytest.FixtureRequest) -> Synthesised:
    return _once(request.param)


@pytest.fixture
def prod() -> Synthesised:
    return _once("prod")


@pytest.fixture
def in_aws() -> list[Synthesised]:
    """All that are not the emulator's."""
    return [_once(name) for name in ENVIRONMENTS if name != "local"]
