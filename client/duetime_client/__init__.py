"""The Python client of Duetime."""

from duetime_client.client import ApiError, Client, Unreachable

__all__ = ["ApiError", "Client", "Unreachable"]
