"""Tokens: what a person shows to answer a question of a run, signed so that nobody else can make one."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import json
import math
import re
from typing import Any, Protocol, Self, TypeGuard, runtime_checkable

from effectful_agents.errors import ConfigurationError, OptionError, TokenTampered
from effectful_agents.operations.approvals import PendingQuestion

__all__ = [
    "HmacSigner",
    "Signer",
    "TokenClaims",
    "is_scope",
    "read_token",
    "scope_digest",
    "tampered",
    "unverified_claims",
    "write_token",
]

_VERSION = "1"
_LONGEST = 16_384
_SHORTEST_KEY = 32


@runtime_checkable
class Signer(Protocol):
    """What signs tokens, and knows its signatures again. It may ask a service that keeps the key."""

    def sign(self, data: bytes, /) -> bytes:
        """A signature of the data, by the present key; it says which key that is."""
        ...

    def verify(self, data: bytes, signature: bytes, /) -> bool:
        """Whether a signature of this data was made with one of the keys, in a time that does not depend on it."""
        ...


class HmacSigner:
    """Sign with HMAC-SHA256.

    A key is changed without a token being lost: the new one signs, and the earlier ones are still known until the last
    of their tokens has expired. A signature names its key by a digest.

    Args:
        key: At least 32 random bytes, `secrets.token_bytes(32)` say, which all processes that redeem tokens share.
        earlier: Keys that signed before.

    Raises:
        OptionError: A key is no bytes, or too short.

    >>> old, new = HmacSigner(b"0" * 32), HmacSigner(b"1" * 32, b"0" * 32)
    >>> new.verify(b"data", old.sign(b"data")), old.verify(b"data", new.sign(b"data"))
    (True, False)
    """

    def __init__(self, key: bytes, *earlier: bytes) -> None:
        keys = (key, *earlier)
        for one in keys:
            if not isinstance(one, bytes):
                raise OptionError(
                    f"a key is bytes, and this is {type(one).__name__}. Make one with `secrets.token_bytes(32)`."
                )
            if len(one) < _SHORTEST_KEY:
                raise OptionError(
                    f"a key has at least {_SHORTEST_KEY} bytes, and this has {len(one)}: tokens could be forged. Make "
                    "one with `secrets.token_bytes(32)`."
                )
        self._present = _key_id(key)
        self._keys = {_key_id(one): one for one in keys}

    def sign(self, data: bytes, /) -> bytes:
        return self._present + _mac(self._keys[self._present], self._present, data)

    def verify(self, data: bytes, signature: bytes, /) -> bool:
        name, mac = signature[:_KEY_ID], signature[_KEY_ID:]
        key = self._keys.get(name)
        # As long as for a key that is known: how long it takes says nothing about the keys.
        expected = _mac(b"" if key is None else key, name, data)
        return hmac.compare_digest(expected, mac) and key is not None


_KEY_ID = 8


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"effectful-agents key " + key).digest()[:_KEY_ID]


def _mac(key: bytes, name: bytes, data: bytes) -> bytes:
    # What is signed says what for: the same key may be used elsewhere.
    return hmac.digest(key, b"effectful-agents approval " + name + data, "sha256")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClaims:
    """What a token says: identifiers and digests, and nothing of what is asked.

    Attributes:
        token_id: The token.
        run_id: The run.
        step_id: The step.
        digest: The digest of what is asked.
        scope: The digest of who may answer.
        expires: From when on it is worth nothing, in seconds since 1970-01-01 UTC.
    """

    token_id: str
    run_id: str
    step_id: str
    digest: str
    scope: str
    expires: float

    @classmethod
    def of(cls, question: PendingQuestion) -> Self:
        """What the token of a question says."""
        return cls(
            token_id=question.token_id,
            run_id=question.run_id,
            step_id=question.step_id,
            digest=question.digest,
            scope=scope_digest(question.scope),
            expires=question.expires,
        )

    def fits(self, question: PendingQuestion) -> bool:
        """Whether they are those of a question."""
        return self == type(self).of(question)


def is_scope(scope: Any) -> TypeGuard[str]:
    r"""Whether something says who may answer: a text, and one that no other text looks like where it is written.

    >>> is_scope("ann"), is_scope(""), is_scope("\ud83d")
    (True, False, False)
    """
    # A lone surrogate is no character: two of them are written in JSON as one that there is.
    return isinstance(scope, str) and scope != "" and scope == scope.encode("utf-8", "ignore").decode()


def scope_digest(scope: str) -> str:
    """What stands for a scope in a token."""
    text = scope.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16, person=b"approval scope").hexdigest()


def write_token(claims: TokenClaims, signer: Signer) -> str:
    """A token as text that stands in an address or a mail as it is. For equal claims and one key it is the same.

    Raises:
        ConfigurationError: It would be longer than `read_token` reads, since the names of its run and step are long.
    """
    body = json.dumps(dataclasses.asdict(claims), sort_keys=True, separators=(",", ":"))
    signed = f"{_VERSION}.{_base64(body.encode())}"
    token = f"{signed}.{_base64(signer.sign(signed.encode()))}"
    if len(token) > _LONGEST:
        raise ConfigurationError(
            f"the token of a question would have {len(token)} characters, and at most {_LONGEST} are read: the names "
            f"of its run and step have {len(claims.run_id) + len(claims.step_id)}. Give the run a shorter name."
        )
    return token


def read_token(token: str, signer: Signer) -> TokenClaims:
    """What a token says, whose signature is right.

    Raises:
        TokenTampered: It is not.
    """
    claims = unverified_claims(token)
    if claims is not None:
        signed, _, signature = token.rpartition(".")
        if signer.verify(signed.encode(), _of_base64(signature)) is True:  # not what only counts as true
            return claims
    raise tampered()


def tampered() -> TokenTampered:
    """The error for what is no token; it is the same whatever is wrong with it."""
    return TokenTampered("this is no token of this program, or it was changed on its way.")


def unverified_claims(token: str) -> TokenClaims | None:
    """What a token says, whoever made it; None for what is none."""
    if not isinstance(token, str) or len(token) > _LONGEST:
        return None
    found = re.fullmatch(rf"{_VERSION}\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)", token, re.ASCII)
    if found is None:
        return None
    try:
        body, signature = map(_of_base64, found.groups())
        claims = TokenClaims(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None
    # Nothing but the one way in which each is written: the bits that base64 leaves over say nothing.
    if (_base64(body), _base64(signature)) != found.groups():
        return None
    texts = (claims.token_id, claims.run_id, claims.step_id, claims.digest, claims.scope)
    is_time = type(claims.expires) in (int, float) and math.isfinite(claims.expires)
    return claims if is_time and all(isinstance(text, str) for text in texts) else None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _of_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
