"""Where notices may be sent: what an endpoint of each protocol looks like, and what an owner's may reach."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from duetime.arns import Arn
from duetime.errors import InvalidField
from duetime.notify import Notify, Protocol
from duetime.targets import ForbiddenTarget, Reach
from duetime.tasks.http import HttpTask

_EMAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,63}")
_LONGEST_EMAIL: Final = 254
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}")


@dataclass(frozen=True, slots=True)
class ListedPrivateOnly(Reach):
    """For what is not encrypted: it stays on networks that the environment's owner knows."""

    def check_address(self, host: str, address: str, port: int) -> None:
        # Not super(): with slots the class that a dataclass decorates is replaced by another.
        Reach.check_address(self, host, address, port)
        if not self.lists_address(address):
            raise ForbiddenTarget(f"{host} is public, and notices go there by https only")


def reach_for(url: str, reach: Reach) -> Reach:
    """What a notice to that URL may connect to."""
    if urlsplit(url).scheme == "https":
        return reach
    return ListedPrivateOnly(reach.owner, reach.rules)


def check_endpoint(protocol: Protocol, endpoint: str, reach: Reach, field: str = "endpoint") -> None:
    """Raises InvalidField, naming the field. A name is resolved when a notice is sent, and what it means then is
    checked then."""
    try:
        _CHECKS[protocol](endpoint, reach)
    except InvalidField as error:
        raise InvalidField(field, error.reason) from error
    except ForbiddenTarget as error:
        raise InvalidField(field, str(error)) from error


def check_notify(notify: Notify | None, reach: Reach) -> None:
    if notify:
        check_endpoint(notify.protocol, notify.endpoint, reach, "notify.endpoint")


def _check_email(endpoint: str, _: Reach) -> None:
    if len(endpoint) > _LONGEST_EMAIL or not _EMAIL.fullmatch(endpoint):
        raise InvalidField("endpoint", "must be an e-mail address")


def _check_phone(endpoint: str, _: Reach) -> None:
    if not _PHONE.fullmatch(endpoint):
        raise InvalidField("endpoint", "must be a phone number such as +4915112345678 (E.164)")


def _check_url(endpoint: str, reach: Reach) -> None:
    task = HttpTask.parse({"url": endpoint})
    if urlsplit(endpoint).scheme != "https" and not any(rule.http_private_networks for rule in reach.rules):
        raise InvalidField("endpoint", "must be an https URL")
    task.check(reach_for(endpoint, reach))


def _check_queue(endpoint: str, reach: Reach) -> None:
    arn = Arn.parse(endpoint)
    if arn is None or arn.service != "sqs":
        raise InvalidField("endpoint", "must be the ARN of an SQS queue")
    if arn.resource.endswith(".fifo"):
        raise InvalidField("endpoint", "must be a standard queue: notices are not in order")
    reach.check_arn(arn)


def _check_function(endpoint: str, reach: Reach) -> None:
    arn = Arn.parse(endpoint)
    if arn is None or arn.service != "lambda" or not arn.resource.startswith("function:"):
        raise InvalidField("endpoint", "must be the ARN of a Lambda function")
    reach.check_arn(arn)


_CHECKS: Final[Mapping[Protocol, Callable[[str, Reach], None]]] = {
    Protocol.EMAIL: _check_email,
    Protocol.SMS: _check_phone,
    Protocol.HTTPS: _check_url,
    Protocol.SQS: _check_queue,
    Protocol.LAMBDA: _check_function,
}
