"""Keys derived from the environment's one secret."""

import hashlib
import hmac

from duetime.signing import SigningKey


def test_each_purpose_has_a_key_of_its_own_that_follows_from_the_secret() -> None:
    key = SigningKey(lambda: b"the secret")
    assert key.derive("pages") == hmac.new(b"the secret", b"pages", hashlib.sha256).digest()
    assert key.derive("pages") == SigningKey(lambda: b"the secret").derive("pages")
    assert key.derive("pages") != key.derive("webhooks")
    assert key.derive("pages") != SigningKey(lambda: b"another").derive("pages")


def test_the_secret_is_read_once_and_only_when_it_is_needed() -> None:
    reads: list[bytes] = []

    def read() -> bytes:
        reads.append(b"x")
        return b"x"

    key = SigningKey(read)
    assert reads == []
    key.derive("a")
    key.derive("b")
    assert reads == [b"x"]
