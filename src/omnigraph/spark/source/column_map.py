"""The option `map`: which column is which property, of frames and of streams."""

from __future__ import annotations

from omnigraph.errors import BadRequest


def column_map(text: str) -> dict[str, str]:
    """`column=property,other=property` as columns with their properties. Half a pair is refused, not passed over."""
    pairs: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        column, _, name = (side.strip() for side in part.partition("="))
        if not column or not name:
            raise BadRequest(
                f"The option `map` is column=property, with commas between pairs, and `{part.strip()}` is no such pair."
            )
        pairs[column] = name
    return pairs
