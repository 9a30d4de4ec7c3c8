"""Where the local stack keeps its things: all under local/, nothing in the machine's temp folder."""

import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Layout:
    root: Path = REPOSITORY

    @property
    def state(self) -> Path:
        return self.root / "local" / ".state"

    @property
    def stack_file(self) -> Path:
        return self.root / "local" / "stack.json"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def emulator_record(self) -> Path:
        return self.state / "emulator.json"

    @property
    def emulator_data(self) -> Path:
        return self.state / "data"

    @property
    def emulator_python(self) -> Path:
        return self.state / "emulator" / "bin" / "python"

    @property
    def emulator_log(self) -> Path:
        return self.logs / "emulator.log"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def assembly(self) -> Path:
        return self.state / "cdk.out"

    @property
    def assembly_record(self) -> Path:
        return self.state / "assembly.json"

    @property
    def deployment_record(self) -> Path:
        return self.state / "deployment.json"

    @property
    def host_layer(self) -> Path:
        return self.root / "build" / "layers" / "host" / "dependencies" / "python"

    @property
    def bin(self) -> Path:
        return Path(sys.prefix) / "bin"

    @property
    def node(self) -> Path:
        return self.bin / "node"

    @property
    def cdk(self) -> Path:
        return self.root / "infra" / "cdk-cli" / "node_modules" / "aws-cdk" / "bin" / "cdk"

    def shown(self, path: Path) -> str:
        """The path as the person at the terminal would type it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)
