"""The same stack on this machine: MiniStack, an AWS emulator, Duetime deployed into it by the CDK CLI."""
