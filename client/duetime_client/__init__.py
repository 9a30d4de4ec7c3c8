"""The Python client of Duetime."""

from duetime_client.client import ApiError, Client

__all__ = ["ApiError", "Client"]
