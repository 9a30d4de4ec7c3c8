"""The secret with which the system that does an attempt's work may speak for it. Only its digest is kept."""

import hashlib
import hmac
import secrets


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_token_of(token: str, digest: str | None) -> bool:
    return digest is not None and hmac.compare_digest(digest_of(token), digest)
