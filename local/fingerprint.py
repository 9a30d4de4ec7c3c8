"""Whether anything that the deployed stack is made of has changed."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = ("cdk.json", "infra", "functions", "layers", "requirements/dev.txt")
# What tools leave behind among the sources; none of it is deployed.
IGNORED = {"__pycache__", "node_modules"}
IGNORED_SUFFIXES = {".pyc", ".egg-info"}


def fingerprint(root: Path) -> str:
    """Of contents, not of times: a checkout of another branch and back deploys nothing."""
    digest = hashlib.sha256(sys.version.encode())
    for source in SOURCES:
        for path in _files(root / source):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        for entry in sorted(path.iterdir()):
            if not _ignored(entry):
                yield from _files(entry)


def _ignored(path: Path) -> bool:
    return path.name in IGNORED or path.name.startswith(".") or path.suffix in IGNORED_SUFFIXES
