"""Topics on SNS: one for each owner who has subscriptions that Duetime does not deliver itself.

SNS knows an endpoint once per topic: on one topic for all, the first owner to name a mailbox would have it. See
docs/adr/0019-a-topic-per-owner.md.
"""

import hashlib
import json
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from duetime.arns import Arn
from duetime.errors import InvalidField, PermanentFailure, Unavailable
from duetime.notice_text import Wording
from duetime.notify import Protocol
from duetime.subscriptions import address_of

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

_REFUSED: Final = frozenset({"InvalidParameter", "InvalidParameterValue", "OptedOut"})
_NOTHING_TO_END: Final = frozenset({"InvalidParameter", "NotFound"})
_NEVER_TAKEN: Final = frozenset({"NotFound", "InvalidParameter", "InvalidParameterValue"})


class SnsTopics:
    def __init__(self, connect: "Callable[[], SNSClient]", arn_prefix: str) -> None:
        """`connect` makes the client: most invocations of a function that has topics need none."""
        self._connect = connect
        self._prefix = arn_prefix

    def subscribe(self, owner: str, protocol: Protocol, endpoint: str) -> str:
        try:
            return self._subscribe_or_make_topic(owner, protocol, endpoint)
        except ClientError as error:
            if _code(error) in _REFUSED:
                message = error.response["Error"].get("Message", "")
                raise InvalidField("endpoint", f"was refused by SNS: {message}") from error
            raise Unavailable("the subscription could not be made: try again") from error

    def unsubscribe(self, sns_arn: str) -> None:
        """No error if it is gone, or was never confirmed: SNS does not end such a one, and drops it by itself after two
        days. Raises Unavailable."""
        try:
            self._client.unsubscribe(SubscriptionArn=sns_arn)
        except ClientError as error:
            if _code(error) not in _NOTHING_TO_END:
                raise Unavailable("the subscription could not be ended: try again") from error

    def publish(self, owner: str, wording: Wording, addresses: Collection[str]) -> None:
        """A topic that is gone took its subscriptions with it: a new one would have no listeners. Raises
        PermanentFailure."""
        content = json.dumps(wording.content, separators=(",", ":"))
        forms = {"default": content, "email": wording.letter, "sms": wording.short}
        try:
            self._client.publish(
                TopicArn=self._arn(owner),
                MessageStructure="json",
                Message=json.dumps(forms),
                Subject=wording.subject,
                MessageAttributes=_attributes(owner, wording, addresses),
            )
        except ClientError as error:
            if _code(error) in _NEVER_TAKEN:
                raise PermanentFailure(f"SNS does not take it: {error}") from error
            raise

    def _subscribe_or_make_topic(self, owner: str, protocol: Protocol, endpoint: str) -> str:
        try:
            return self._subscribe(owner, protocol, endpoint)
        except ClientError as error:
            if _code(error) != "NotFound":
                raise
        self._make_topic(owner)
        return self._subscribe(owner, protocol, endpoint)

    def _subscribe(self, owner: str, protocol: Protocol, endpoint: str) -> str:
        # It never changes: a changed policy takes SNS up to a quarter of an hour. So an owner's subscriptions of one
        # endpoint can share it, and to subscribe again is no error.
        policy = {"owner": [owner], "to": [address_of(protocol, endpoint)]}
        attributes = {"FilterPolicy": json.dumps(policy, sort_keys=True)}
        if protocol is Protocol.SQS:
            attributes["RawMessageDelivery"] = "true"
        answer = self._client.subscribe(
            TopicArn=self._arn(owner),
            Protocol=protocol.value,
            Endpoint=endpoint,
            Attributes=attributes,
            # Otherwise one that awaits its confirmation has none.
            ReturnSubscriptionArn=True,
        )
        return answer["SubscriptionArn"]

    def _make_topic(self, owner: str) -> None:
        arn = self._arn(owner)
        attributes = {"KmsMasterKeyId": "alias/aws/sns", "Policy": _policy_of(arn)}
        self._client.create_topic(Name=arn.rpartition(":")[2], Attributes=attributes)

    def _arn(self, owner: str) -> str:
        return self._prefix + hashlib.sha256(owner.encode()).hexdigest()[:32]

    @cached_property
    def _client(self) -> "SNSClient":
        return self._connect()


def _code(error: ClientError) -> str:
    code: str = error.response["Error"]["Code"]
    return code.removesuffix("Exception")


def _policy_of(topic_arn: str) -> str:
    """Without one, SNS's own would let everybody in the account subscribe. This leaves it to their IAM policies."""
    arn = Arn.parse(topic_arn)
    assert arn is not None
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{arn.partition}:iam::{arn.account}:root"},
        "Action": "sns:Publish",
        "Resource": topic_arn,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _attributes(owner: str, wording: Wording, addresses: Collection[str]) -> dict[str, Any]:
    """What filter policies look at; a queue's readers see them too."""
    data = wording.content["data"]
    texts = {"owner": owner, "event": wording.event.value, "type": wording.content["type"]}
    texts |= {"job_id": data["job_id"]} if "job_id" in data else {}
    lists = {"to": sorted(addresses), "tags": list(data.get("tags", ()))}
    return {name: {"DataType": "String", "StringValue": text} for name, text in texts.items()} | {
        name: {"DataType": "String.Array", "StringValue": json.dumps(values)}
        for name, values in lists.items()
        if values
    }
