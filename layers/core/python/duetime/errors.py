"""What can go wrong, as one tree.

DuetimeError
├── RequestError            the API answers with a problem that tells the caller what to do
│   ├── InvalidField        a field's value cannot be accepted
│   ├── NotFound            no such thing, or not the caller's to see
│   ├── Conflict            it contradicts what is already there
│   ├── Stale               the caller's If-Match names a version that is no more
│   ├── TooMany             a quota is used up
│   ├── NotIdentified       the request carries no verified identity
│   └── Unavailable         not now, but later: nothing was done, the same request may be repeated
├── TaskError               an attempt did not succeed
│   ├── TransientFailure    worth another attempt
│   └── PermanentFailure    another attempt would fail the same way
├── ConfigurationError      the deployment is wrong: a setting is missing or malformed
└── IllegalTransition       a bug: the code asked for a move that the table of transitions does not have

A lost race is not here: it is a result, not an error (see store.py).
"""

from datetime import timedelta


class DuetimeError(Exception):
    """Anything that Duetime itself raises."""


class RequestError(DuetimeError):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidField(RequestError):
    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class NotFound(RequestError):
    pass


class Conflict(RequestError):
    pass


class Stale(RequestError):
    pass


class NotIdentified(RequestError):
    pass


class Unavailable(RequestError):
    """Not the caller's fault, but theirs to repeat: a 503 with Retry-After."""


class TooMany(RequestError):
    def __init__(self, message: str, *, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TaskError(DuetimeError):
    pass


class TransientFailure(TaskError):
    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PermanentFailure(TaskError):
    pass


class ConfigurationError(DuetimeError):
    pass


class IllegalTransition(DuetimeError):
    pass
