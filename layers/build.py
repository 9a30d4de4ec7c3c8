"""Builds the dependencies layer without Docker: `python -m layers.build aws|host`.

For `aws` the wheels of the Lambda runtime's platform are unpacked, whatever machine this is; for `host` those of
this interpreter, because the local emulator runs the functions with it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "layers" / "dependencies" / "requirements.txt"
BUILD = ROOT / "build" / "layers"
STAMP = ".stamp"

Install = Callable[[Sequence[str], Path], None]


class LayerError(Exception):
    """What is wrong with a layer and what to do about it, in one sentence."""


@dataclass(frozen=True)
class Target:
    name: str
    platform: str
    options: tuple[str, ...]


# No bytecode for aws: only the runtime's own Python, which need not be here, could compile it.
AWS = Target(
    "aws",
    "cpython-313-linux-aarch64",
    ("--python-platform", "aarch64-manylinux2014", "--python-version", "3.13", "--only-binary", ":all:"),
)
HOST = Target(
    "host",
    f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}",
    ("--compile-bytecode",),
)
TARGETS = {target.name: target for target in (AWS, HOST)}


@dataclass(frozen=True)
class DependenciesLayer:
    target: Target
    requirements: Path = REQUIREMENTS
    build: Path = BUILD

    @property
    def folder(self) -> Path:
        return self.build / self.target.name / "dependencies"

    def stamp(self) -> str:
        """Names everything that decides the layer's content: when it changes, the layer is rebuilt."""
        recipe = "\n".join((self.target.platform, *self.target.options)).encode()
        return hashlib.sha256(recipe + b"\n" + self.requirements.read_bytes()).hexdigest()

    def is_current(self) -> bool:
        stamp = self.folder / STAMP
        return stamp.is_file() and stamp.read_text() == self.stamp()

    def require_current(self) -> Path:
        if not self.is_current():
            raise LayerError(f"the dependencies layer is not built for {self.target.name}: run 'make layers'")
        return self.folder

    def ensure_current(self, install: Install) -> bool:
        """Says whether it had to build. A build that fails or is killed leaves the last finished one in place."""
        if self.is_current():
            return False
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=".building-") as scratch:
            fresh = Path(scratch) / "fresh"
            arguments = (*self.target.options, "--require-hashes", "-r", str(self.requirements))
            install(arguments, fresh / "python")
            drop_leftovers(fresh / "python")
            (fresh / STAMP).write_text(self.stamp())
            self._replace_by(fresh, Path(scratch) / "old")
        return True

    def _replace_by(self, fresh: Path, old: Path) -> None:
        # A folder cannot be renamed over another. Dying between the two renames leaves none, never a half.
        if self.folder.exists():
            self.folder.rename(old)
        fresh.rename(self.folder)
        self.folder.chmod(0o755)


def install_with_uv(arguments: Sequence[str], into: Path) -> None:
    command = [find_uv(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(into)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LayerError(f"uv could not install the dependencies layer: {done.stderr.strip()}")


def drop_leftovers(packages: Path) -> None:
    # Console scripts name this machine's Python in their first line, so they would change the asset's hash.
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (packages / ".lock").unlink(missing_ok=True)


def find_uv() -> str:
    beside_python = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join((beside_python, os.environ.get("PATH", ""))))
    if uv is None:
        raise LayerError("uv was not found, neither beside Python nor on the PATH: run 'make setup'")
    return uv


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1 or arguments[0] not in TARGETS:
        sys.exit(f"usage: python -m layers.build {'|'.join(TARGETS)}")
    layer = DependenciesLayer(TARGETS[arguments[0]])
    try:
        layer.ensure_current(install_with_uv)
    except LayerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
