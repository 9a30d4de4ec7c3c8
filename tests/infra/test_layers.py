from collections.abc import Sequence
from pathlib import Path

import pytest

from layers.build import AWS, HOST, STAMP, DependenciesLayer, LayerError

AARCH64 = 183
ELF_MACHINE = slice(18, 20)


@pytest.fixture
def layer(tmp_path: Path) -> DependenciesLayer:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("pydantic==2\n")
    return DependenciesLayer(AWS, requirements, tmp_path / "build")


def install(_: Sequence[str], into: Path) -> None:
    (into / "bin").mkdir(parents=True)
    (into / "package.py").write_text("")


def break_off(arguments: Sequence[str], into: Path) -> None:
    install(arguments, into)
    raise LayerError("no network")


def test_a_layer_is_built_once(layer: DependenciesLayer) -> None:
    assert [layer.ensure_current(install), layer.ensure_current(install)] == [True, False]
    assert sorted(path.name for path in (layer.require_current() / "python").iterdir()) == ["package.py"]


def test_changed_requirements_are_built_anew(layer: DependenciesLayer) -> None:
    layer.ensure_current(install)
    layer.requirements.write_text("pydantic==3\n")
    assert not layer.is_current()
    assert layer.ensure_current(install)


def test_a_broken_build_leaves_the_last_finished_one(layer: DependenciesLayer) -> None:
    layer.ensure_current(install)
    stamp = (layer.folder / STAMP).read_text()
    layer.requirements.write_text("pydantic==3\n")
    with pytest.raises(LayerError, match="no network"):
        layer.ensure_current(break_off)
    assert (layer.folder / STAMP).read_text() == stamp
    assert [path.name for path in layer.folder.parent.iterdir()] == ["dependencies"]


def test_a_broken_first_build_is_not_taken_for_a_finished_one(layer: DependenciesLayer) -> None:
    with pytest.raises(LayerError):
        layer.ensure_current(break_off)
    with pytest.raises(LayerError, match="not built for aws: run 'make layers'"):
        layer.require_current()


@pytest.mark.parametrize("target", [AWS, HOST])
def test_the_repositorys_layers_are_current(target: object) -> None:
    assert DependenciesLayer(AWS if target is AWS else HOST).is_current()


def test_the_layer_for_aws_holds_nothing_of_another_processor() -> None:
    libraries = list(DependenciesLayer(AWS).require_current().rglob("*.so*"))
    machines = {int.from_bytes(path.read_bytes()[ELF_MACHINE], "little") for path in libraries}
    assert machines == {AARCH64}


def test_boto3_is_left_to_the_runtime() -> None:
    packages = {path.name for path in (DependenciesLayer(AWS).require_current() / "python").iterdir()}
    assert packages & {"boto3", "botocore", "s3transfer"} == set()
    assert {"aws_lambda_powertools", "pydantic", "croniter", "tzdata"} <= packages
