"""Which provider is meant, as values: from the environment, or from the configuration of a deployment.

A key is named by the variable that holds it wherever it is written down; only the environment has the key itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from omnigraph.config import parse_duration
from omnigraph.errors import BadRequest

REMOTE_KINDS: Final = ("openai-compatible", "gemini")
KINDS: Final = (*REMOTE_KINDS, "local", "mock")
_PREFIX: Final = "OMNIGRAPH_EMBEDDING_"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """One provider with everything that is needed to ask it."""

    kind: str
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    deadline: float = 60.0
    timeout: float = 20.0
    batch: int = 64
    calls_per_second: float | None = None
    parallel: int = 4
    on_write: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadRequest(f"there is no embedding provider `{self.kind}`; there are {', '.join(KINDS)}")
        if self.kind == "openai-compatible" and not self.base_url:
            raise BadRequest("the openai-compatible embedding provider needs a base_url")
        if self.kind in REMOTE_KINDS and not self.model:
            raise BadRequest(f"the {self.kind} embedding provider needs a model")
        if self.kind == "gemini" and not self.api_key:
            raise BadRequest("the gemini embedding provider needs an api_key")
        if self.parallel < 1:
            raise BadRequest("an embedding provider needs at least one request at a time (parallel)")
        if self.batch < 1 or self.deadline <= 0 or self.timeout <= 0:
            raise BadRequest("an embedding provider needs a batch of at least 1, and times above zero")


def is_named(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names a provider, be it one that exists or not."""
    return bool(environment.get(f"{_PREFIX}PROVIDER", "").strip())


def from_environment(environment: Mapping[str, str] = os.environ) -> EmbeddingSettings | None:
    """The provider that the environment names; None when it names none."""

    def given(name: str) -> str:
        return environment.get(f"{_PREFIX}{name.upper()}", "").strip()

    kind = given("provider")
    if not kind:
        return None
    values: dict[str, Any] = {"kind": kind}
    for name in ("model", "base_url", "api_key"):
        values[name] = given(name) or None
    for name, parse in (
        ("deadline", parse_duration),
        ("timeout", parse_duration),
        ("batch", int),
        ("calls_per_second", float),
        ("parallel", int),
        ("on_write", _switch),
    ):
        text = given(name)
        if text:
            try:
                values[name] = parse(text)
            except ValueError as error:
                raise BadRequest(f"{_PREFIX}{name.upper()}: {error}") from None
    return EmbeddingSettings(**values)


def _switch(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise ValueError(f"`{text}` is not one of on, off")
    return text.lower() == "on"


def from_mapping(
    written: Mapping[str, Any], where: str, environment: Mapping[str, str] = os.environ
) -> EmbeddingSettings:
    """The provider that a configuration file describes. Its key is `${A_VARIABLE}`; a key written out is refused."""
    known = {one.name for one in fields(EmbeddingSettings)}
    unknown = sorted(set(written) - known)
    if unknown:
        raise BadRequest(f"{where}: `{unknown[0]}` is not known; an embedding provider has {', '.join(sorted(known))}")
    if "kind" not in written:
        raise BadRequest(f"{where}: an embedding provider needs its kind: {', '.join(KINDS)}")
    values = dict(written)
    key = values.get("api_key")
    if key is not None:
        named = _VARIABLE.fullmatch(str(key))
        if named is None:
            raise BadRequest(f"{where}: a key does not belong into a file; write api_key: ${{NAME_OF_A_VARIABLE}}")
        values["api_key"] = environment.get(named[1])
        if not values["api_key"]:
            raise BadRequest(f"{where}: the variable {named[1]} that holds the key is not set")
    for name in ("deadline", "timeout"):
        if isinstance(values.get(name), str):
            try:
                values[name] = parse_duration(values[name])
            except ValueError as error:
                raise BadRequest(f"{where}: {name}: {error}") from None
    try:
        return EmbeddingSettings(**values)
    except (BadRequest, TypeError) as error:
        raise BadRequest(f"{where}: {error}") from None
