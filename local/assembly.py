"""The synthesised stack: the slowest step of `up`, so it is kept until a source changes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.cdk_cli import run_cdk
from local.layout import Layout
from local.progress import Progress
from local.records import read_record, write_record


def ensure_assembly(layout: Layout, fingerprint: str, progress: Progress) -> None:
    if _is_current(layout, fingerprint):
        return
    with progress.step("Synthesising the stack"), _scratch(layout) as scratch:
        run_cdk(
            layout,
            ["synth", "--quiet", "-c", "env=local", "--output", str(scratch / "cdk.out")],
            layout.logs / "synth.log",
            variables={"TMPDIR": str(scratch)},
            failure="The stack could not be synthesised",
        )
        _replace(layout, scratch / "cdk.out", fingerprint)


@contextmanager
def _scratch(layout: Layout) -> Iterator[Path]:
    """A folder per synthesis: an interrupted one leaves a lock and jsii's temporary files behind, all in here."""
    scratch = layout.state / "synthesis"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _replace(layout: Layout, fresh: Path, fingerprint: str) -> None:
    layout.assembly_record.unlink(missing_ok=True)
    shutil.rmtree(layout.assembly, ignore_errors=True)
    fresh.rename(layout.assembly)
    write_record(layout.assembly_record, {"fingerprint": fingerprint})


def _is_current(layout: Layout, fingerprint: str) -> bool:
    synthesised = (layout.assembly / "manifest.json").is_file()
    return synthesised and read_record(layout.assembly_record) == {"fingerprint": fingerprint}
