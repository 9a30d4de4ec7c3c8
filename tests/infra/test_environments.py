import copy
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from infra.app import ROOT
from infra.environments import Settings, read_environment
from infra.settings import SettingsError
from tests.infra.conftest import BLOCKS, ENVIRONMENTS

REMOVED = object()


def rule(**changes: object) -> dict[str, object]:
    return {"principals": ["*"], "python": [], "arns": [], "http_private_addresses": []} | changes


def changed(path: str, value: object) -> dict[str, Any]:
    blocks: dict[str, Any] = copy.deepcopy(BLOCKS)
    *folders, name = path.split(".")
    block = blocks["prod"]
    for folder in folders:
        block = block[folder]
    if value is REMOVED:
        del block[name]
    else:
        block[name] = value
    return blocks


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_blocks_of_cdk_json_are_valid(name: str) -> None:
    assert read_environment(name, BLOCKS).name == name


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("worker.memory_mb", REMOVED, "environment 'prod': setting 'worker.memory_mb' is missing"),
        ("worker", REMOVED, "setting 'worker' is missing"),
        ("colour", "red", "setting 'colour' is unknown"),
        ("worker.memory", 512, "setting 'worker.memory' is unknown"),
        ("worker.memory_mb", "512", "setting 'worker.memory_mb' must be a whole number"),
        ("worker.memory_mb", True, "setting 'worker.memory_mb' must be a whole number"),
        ("worker.memory_mb", 64, "setting 'worker.memory_mb' must be between 128 and 10240"),
        ("keep_data", 1, "setting 'keep_data' must be true or false"),
        ("log_level", "LOUD", "setting 'log_level' must be one of"),
        ("retention.function_log_days", 2, "setting 'retention.function_log_days' must be one of"),
        ("api", 5, "setting 'api' must be a block"),
        ("admins", "me", "setting 'admins' must be a list of texts"),
        ("allowed_targets", {}, "setting 'allowed_targets' must be a list of blocks"),
        ("allowed_targets", [rule(http_private_addresses=["here"])], "must be a list of CIDR blocks"),
        (
            "allowed_targets",
            [rule(arns=["arn:aws:s3:::x"])],
            "must be a list of ARN patterns, each of one service",
        ),
        ("allowed_targets", [rule(arns=["*"])], "'allowed_targets.0.arns' must be a list of ARN patterns"),
        (
            "allowed_targets",
            [rule(arns=["arn:aws:lambda:*:*:function:*"])],
            "would let tasks reach Duetime itself",
        ),
        (
            "allowed_targets",
            [rule(arns=["arn:aws:sqs:*:*:duetime-*"])],
            "would let tasks reach Duetime itself",
        ),
        ("allowed_targets", [{"principals": ["*"]}], "setting 'allowed_targets.0.python' is missing"),
        ("alarms.recipients", ["on call"], "'alarms.recipients' must be a list of e-mail addresses"),
        ("alarms.oldest_hint_seconds", 60, "must be between 1800 and"),
        ("alarms.watcher_silent_minutes", 20, "must be one of 35"),
        ("worker.scaling.high", {}, r"must be \{max_concurrency\} or \{min_pollers, max_pollers\}"),
        ("worker.scaling.high", {"min_pollers": 9, "max_pollers": 3}, "min_pollers 9 above max_pollers 3"),
        ("worker.scaling.high", {"max_concurrency": 5, "min_pollers": 2}, "is unknown"),
        ("worker.scaling.high", {"max_concurrency": 1}, "between 2 and 1000"),
    ],
)
def test_a_wrong_setting_is_one_sentence_that_names_it(path: str, value: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_environment("prod", changed(path, value))


def test_an_unknown_environment_is_told_which_there_are() -> None:
    with pytest.raises(SettingsError, match=r"'qa' is not in cdk\.json, which has local, dev, staging, prod"):
        read_environment("qa", BLOCKS)


@pytest.mark.parametrize("name", [None, ""])
def test_no_environment_is_told_how_to_give_one(name: str | None) -> None:
    with pytest.raises(SettingsError, match="add '-c env=NAME'"):
        read_environment(name, BLOCKS)


@pytest.mark.parametrize("blocks", [None, {}])
def test_a_cdk_json_without_environments_says_so(blocks: object) -> None:
    with pytest.raises(SettingsError, match="no 'environments'"):
        read_environment("prod", blocks)


def settings_of(kind: Any, prefix: str = "") -> set[str]:
    if get_origin(kind) is tuple and is_dataclass(get_args(kind)[0]):
        return settings_of(get_args(kind)[0], prefix)
    if isinstance(kind, UnionType):
        return {path for choice in get_args(kind) for path in settings_of(choice, prefix)}
    if not is_dataclass(kind):
        return set() if kind is type(None) else {prefix}
    hints = get_type_hints(kind)
    return {
        path
        for field in fields(kind)
        for path in settings_of(hints[field.name], f"{prefix}.{field.name}" if prefix else field.name)
    }


def test_every_setting_is_documented() -> None:
    document = (ROOT / "docs" / "environments.md").read_text()
    assert [path for path in sorted(settings_of(Settings)) if f"`{path}`" not in document] == []
