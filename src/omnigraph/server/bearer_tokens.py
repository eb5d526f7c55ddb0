"""Who asks: bearer tokens, kept as hashes from the moment they are read, and compared without telling by time."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BadRequest

FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
ONE = "OMNIGRAPH_SERVER_BEARER_TOKEN"


@dataclass(frozen=True, slots=True)
class BearerTokens:
    """Hashes of tokens and the actors that they stand for."""

    known: tuple[tuple[bytes, str], ...]

    def __repr__(self) -> str:
        return f"<tokens of {len(self.known)} actors>"

    def __bool__(self) -> bool:
        return bool(self.known)

    def actor(self, token: str) -> str | None:
        """Whose token it is, or None. Looks at every known one, whichever fits."""
        given = _hash(token)
        found = None
        for digest, actor in self.known:
            if hmac.compare_digest(digest, given):
                found = actor
        return found


def hashed(tokens: Mapping[str, str]) -> BearerTokens:
    """The tokens of actors, hashed."""
    return BearerTokens(tuple((_hash(token), actor) for actor, token in tokens.items()))


def read_tokens(environment: Mapping[str, str] = os.environ) -> BearerTokens:
    """The tokens that the environment gives, in one of three ways; no tokens at all when it gives none."""
    given = [name for name in (FILE, JSON, ONE) if environment.get(name)]
    if len(given) > 1:
        raise BadRequest(f"{' and '.join(given)} contradict each other: set one of them")
    if not given:
        return BearerTokens(())
    if given == [ONE]:
        return hashed(_checked({"default": environment[ONE]}, ONE))
    if given == [JSON]:
        return hashed(_parsed(environment[JSON], JSON))
    path = environment[FILE]
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"{FILE}: {path} cannot be read: {error.strerror}") from None
    return hashed(_parsed(text, FILE))


def _parsed(text: str, source: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        # The parser's own words would quote the text.
        raise BadRequest(f'{source} is no JSON: write {{"actor": "token"}}') from None
    if not isinstance(found, dict) or not all(isinstance(token, str) for token in found.values()):
        raise BadRequest(f'{source} must be an object of actors and their tokens: {{"actor": "token"}}')
    return _checked(found, source)


def _checked(tokens: dict[str, str], source: str) -> dict[str, str]:
    for actor, token in tokens.items():
        if not actor or not token or token != token.strip() or not token.isascii():
            raise BadRequest(f"{source}: the token of `{actor}` is empty, or has spaces around it, or is not ASCII")
    if len(set(tokens.values())) != len(tokens):
        raise BadRequest(f"{source}: two actors have the same token")
    return tokens


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
