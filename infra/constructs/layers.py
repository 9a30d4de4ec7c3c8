from pathlib import Path

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64
# Bytecode comes and goes with every test run; it must not change an asset's hash.
NOT_SHIPPED = ["**/__pycache__", "**/*.pyc", "**/*.egg-info", ".stamp"]


class Layers(Construct):
    """`core` is the domain, `dependencies` its third-party packages, `tasks` the team's own Python functions."""

    def __init__(self, scope: Construct, construct_id: str, *, sources: Path, dependencies: Path) -> None:
        super().__init__(scope, construct_id)
        self.core = self._layer("Core", sources / "core", NOT_SHIPPED)
        # Bytecode stays in this one: it was compiled on purpose, for the emulator's interpreter.
        self.dependencies = self._layer("Dependencies", dependencies, [".stamp"])
        self.tasks = self._layer("Tasks", sources / "tasks", NOT_SHIPPED)

    def _layer(self, construct_id: str, folder: Path, exclude: list[str]) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            construct_id,
            code=lambda_.Code.from_asset(str(folder), exclude=exclude),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )
