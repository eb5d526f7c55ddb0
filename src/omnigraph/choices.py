"""The words that arguments with a fixed choice take, as types: editors complete them and checkers know them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

Mode = Literal["append", "merge", "overwrite"]
"""How a load treats rows that are there: refuse their ids, update them, or replace all rows of each named type."""

Engine = Literal["auto", "local", "spark"]
"""What runs bulk work; `auto` decides by size."""

Strategy = Literal["ours", "theirs"]
"""Which side wins where both sides of a merge changed a row."""

Granularity = Literal["row", "property"]
"""How fine the changes are that can collide in a merge: a whole row, or one property of it."""

EmbedMode = Literal["missing", "stale", "all"]
"""Which rows get a vector of their text: those without one; also those whose vector was made of another text or by
another model; all."""

ExportFormat = Literal["jsonl", "parquet"]
"""What an export writes."""

Time = datetime | str | int
"""A moment: an aware datetime, ISO text with an offset, or microseconds since the epoch."""

Target = str | int | datetime | None
"""Where to read: a branch, a commit id or its beginning, a tag, a manifest version, a time (an aware datetime, ISO
text, `2 hours ago`); None is the head of the handle's branch."""
