"""Where the next page of a list begins, as an opaque text.

It is signed together with whose list it is and what was asked for, so that a token works for nobody else and for no
other question, and nobody can make one.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duetime.errors import InvalidField

LONGEST: Final = 1024
_SIGNATURE_BYTES: Final = 16
_REFUSAL: Final = "is not one that a page of this list gave"


@dataclass(frozen=True, slots=True)
class PageTokens:
    # Read when it is first needed: most requests have no second page.
    key: Callable[[], bytes]

    def make(self, list_name: str, principal: str, question: Any, position: Sequence[str]) -> str:
        content = json.dumps(list(position), separators=(",", ":")).encode()
        signature = self._sign(list_name, principal, question, content)
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def read(self, list_name: str, principal: str, question: Any, token: str) -> list[str]:
        """Raises InvalidField for what `make` did not make of the same list, caller and question."""
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidField("page_token", _REFUSAL) from None
        signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(list_name, principal, question, content)):
            raise InvalidField("page_token", _REFUSAL)
        return [str(part) for part in json.loads(content)]

    def _sign(self, list_name: str, principal: str, question: Any, content: bytes) -> bytes:
        subject = json.dumps([list_name, principal, question], sort_keys=True, default=str).encode()
        framed = hashlib.sha256(subject).digest() + content
        return hmac.digest(self.key(), framed, "sha256")[:_SIGNATURE_BYTES]
