"""How Lance turns a text into tokens: the one definition that indexes, queries and our own reading of texts share."""

from __future__ import annotations

from typing import Any

import lance

from omnigraph.schema.search_settings import TextSettings


def analysis_parameters(settings: TextSettings) -> dict[str, Any]:
    """The settings in Lance's words, for building an index and for asking its tokenizer."""
    return {
        "base_tokenizer": "simple",
        "language": settings.language.capitalize(),
        "lower_case": True,
        "stem": settings.stem,
        "remove_stop_words": settings.stop_words,
        "ascii_folding": settings.fold,
        "max_token_length": None,
    }


def lance_tokens(text: str, settings: TextSettings) -> list[tuple[str, int]]:
    """The tokens of a text with their positions; a word that was left out leaves a gap, except at the start."""
    return [(token.text, token.position) for token in lance.tokenize(text, **analysis_parameters(settings))]


def is_separator(character: str) -> bool:
    """Whether a character stands between tokens and is never part of one."""
    return not lance.tokenize(
        character,
        base_tokenizer="simple",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
    )
