"""What can be written, as data for editors: keywords and functions with their signatures and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.query.check.functions import ALL_FUNCTIONS
from omnigraph.query.functions.table import FUNCTIONS
from omnigraph.query.text.tokens import KEYWORDS, SOFT_KEYWORDS

_OTHERS = {
    "date": ("date(String) -> Date", "A date that is written out."),
    "datetime": ("datetime(String) -> DateTime", "An instant that is written out."),
    "now": ("now() -> DateTime", "The instant at which the query runs."),
    "count": ("count(value) -> I64", "How many rows, or values that are not null."),
    "sum": ("sum(Number) -> Number", "The sum; of integers it is exact."),
    "avg": ("avg(Number) -> F64", "The mean."),
    "min": ("min(T) -> T", "The smallest value."),
    "max": ("max(T) -> T", "The greatest value."),
    "collect": ("collect(T) -> [T]", "The values as a list, in the order of the rows, without nulls."),
    "median": ("median(Number) -> F64", "The value in the middle, or the mean of the two in the middle."),
    "stddev": ("stddev(Number) -> F64", "The standard deviation of a sample; null for fewer than two values."),
    "search": ("search($x.text, String) -> Bool", "Whether the text holds any of the words."),
    "match_all": ("match_all($x.text, String) -> Bool", "Whether the text holds all of the words, anywhere."),
    "match_text": ("match_text($x.text, String) -> Bool", "Whether the text holds the words in sequence."),
    "fuzzy": ("fuzzy($x.text, String, Int?) -> Bool", "Whether the text holds a word within an edit distance."),
    "nearest": ("nearest($x.vector, query, exact: Bool?) -> F64", "The distance of a vector; smaller is better."),
    "bm25": ("bm25($x.text, String) -> F64", "The BM25 score of a text; higher is better."),
    "rrf": ("rrf(ranking, ranking, Int?) -> F64", "Two rankings made one; higher is better."),
    "hops": ("hops($path) -> I64", "The number of edges of a path."),
    "nodes": ("nodes($path) -> [String]", "The ids of the nodes of a path, from its start."),
    "edges": ("edges($path) -> [String]", "The ids of the edges of a path, from its start."),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that can be offered: `detail` is a signature, `doc` a sentence."""

    text: str
    kind: Literal["keyword", "function"]
    detail: str = ""
    doc: str = ""


def completions() -> tuple[Completion, ...]:
    """Every keyword and every function, each by name."""
    found = [Completion(word, "keyword") for word in sorted({*KEYWORDS, *SOFT_KEYWORDS})]
    return (*found, *(_function(name) for name in sorted(set(ALL_FUNCTIONS))))


def _function(name: str) -> Completion:
    if name in FUNCTIONS:
        function = FUNCTIONS[name]
        return Completion(name, "function", function.signatures[0].text, function.doc)
    detail, doc = _OTHERS.get(name, (f"{name}(Int)", "A length of time, beside `+` or `-` and a Date or a DateTime."))
    return Completion(name, "function", detail, doc)
