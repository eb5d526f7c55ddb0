"""Searches as expressions: text predicates, which are Booleans, and rankings, which are scores.

An operator (`Rank`, `Fuse`) makes the column of a ranking, and what is above reads it by `ColumnRef`. A `TextMatch` is
a Boolean leaf: usually the whole predicate of a `Filter`, which an index answers at once; but it may also stand under
`or` and `not`, or be a returned column. There an engine hands its truth over as a column of Booleans, one for each
row, null where the text is null. `searches_in` of `query/predicates.py` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph.schema.catalog import property_column

if TYPE_CHECKING:
    from omnigraph.query.ir.expressions import Expr


class TextPredicate(StrEnum):
    """Full-text filters: any token; all tokens anywhere; all in sequence; any token within an edit distance."""

    SEARCH = "search"
    MATCH_ALL = "match_all"
    MATCH_TEXT = "match_text"
    FUZZY = "fuzzy"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text predicate on a property. `edits` None: by token length. Null where the text is null.

    `table_key` may be that of several tables (`interface:I`, `node:A|B`): then each row's own table is searched.
    """

    predicate: TextPredicate
    var: str
    table_key: str
    property: str
    query: Expr
    edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """Distance of a vector property to a query vector (or to text that is embedded). Smaller is better.

    The metric is that of the property's index, cosine by default. `exact` forbids an approximate index.
    """

    var: str
    table_key: str
    property: str
    dim: int
    query: Expr
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Bm25:
    """BM25 score of a text property for a query text. Higher is better; a row without a matching token scores null."""

    var: str
    table_key: str
    property: str
    query: Expr


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of two rankings. Higher is better; null for a row that neither of them scores."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expr | None = None


Ranking = Nearest | Bm25 | Rrf


def searched_column(search: TextMatch | Nearest | Bm25) -> str:
    """The column of the type's table that a search looks at: a property may be called `id`, `src` or `dst`."""
    return property_column(search.property)
