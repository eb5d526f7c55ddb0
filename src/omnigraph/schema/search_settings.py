"""How the texts and vectors of a property are searched: what its `@search` and `@index` annotations say.

The settings are part of the catalog. They decide which tokens a text has and how far two vectors are apart, so every
engine and every index of the property takes them from here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from omnigraph.schema.catalog import InterfaceProperty, Property

LANGUAGES = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian"),
    *("norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish"),
)
"""The languages that have a stemmer; stop words are known for most of them."""


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How a text becomes tokens. `positions`: the index keeps where tokens stand, so that it can answer phrases."""

    language: str = "english"
    stem: bool = False
    stop_words: bool = False
    fold: bool = True
    positions: bool = True

    @property
    def plain(self) -> bool:
        """Whether each token is made of its characters alone, whatever word they spell."""
        return not self.stem and not self.stop_words


class Metric(StrEnum):
    """How far two vectors are apart; smaller is nearer for each of them."""

    COSINE = "cosine"
    L2 = "l2"
    DOT = "dot"


def text_settings(property_: Property | InterfaceProperty | None) -> TextSettings:
    """The settings that `@search(…)` gives a text property; what it does not say is as usual."""
    options = _options(property_, "search")
    known = {field.name: options[field.name] for field in fields(TextSettings) if field.name in options}
    return TextSettings(**known)  # type: ignore[arg-type]  # the checker has seen to their types


def metric_of(property_: Property | InterfaceProperty | None) -> Metric:
    """The metric that `@index(metric="…")` gives a vector property, cosine when it gives none."""
    return Metric(str(_options(property_, "index").get("metric", Metric.COSINE)))


def _options(property_: Property | InterfaceProperty | None, name: str) -> dict[str, object]:
    annotations = getattr(property_, "annotations", ())
    return {key: value for each in annotations if each.name == name for key, value in each.options}
