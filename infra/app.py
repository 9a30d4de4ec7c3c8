"""What `cdk` runs: one stack for the environment that `-c env=NAME` chose."""

import json
import os
import sys
from pathlib import Path

# jsii starts `node` from the PATH. Without an activated .venv, the one beside Python is still the right one.
_NODE = Path(sys.executable).with_name("node")
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))

from aws_cdk import App, CliCredentialsStackSynthesizer  # noqa: E402

from infra.environments import Environment, read_environment  # noqa: E402
from infra.scheduler_stack import SchedulerStack  # noqa: E402
from infra.settings import SettingsError  # noqa: E402
from layers.build import AWS, HOST, DependenciesLayer, LayerError  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


def add_stack(app: App, environment: Environment) -> SchedulerStack:
    # The emulator runs functions on this machine's interpreter, and its IAM refuses the roles and the TLS-only
    # bucket of a bootstrapped account: hence the host's layer, and the caller's own credentials.
    target, synthesizer = (HOST, CliCredentialsStackSynthesizer()) if environment.is_local else (AWS, None)
    dependencies = DependenciesLayer(target).require_current()
    return SchedulerStack(app, environment, root=ROOT, dependencies=dependencies, synthesizer=synthesizer)


def main() -> None:
    app = App(analytics_reporting=False)
    # Read from the file and not from the app's context, which loses every null on its way through jsii.
    blocks = json.loads((ROOT / "cdk.json").read_text())["context"].get("environments")
    try:
        add_stack(app, read_environment(app.node.try_get_context("env"), blocks))
    except (SettingsError, LayerError) as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
