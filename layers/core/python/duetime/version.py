"""The version of the API and of the code behind it. A test holds it to pyproject.toml."""

VERSION = "0.1.0"
