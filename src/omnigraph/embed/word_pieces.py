"""Text to the word pieces of an uncased BERT vocabulary, as the model was trained on them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

_LONGEST_WORD = 100


def read_vocabulary(path: Path) -> Mapping[str, int]:
    """The pieces of a `vocab.txt`, one a line, with their numbers."""
    return {line: number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())}


def piece_numbers(text: str, vocabulary: Mapping[str, int], most: int) -> list[int]:
    """The numbers of a text's pieces, between the marks of start and end; at most `most`, the end of it cut off."""
    unknown = vocabulary["[UNK]"]
    found: list[int] = []
    for word in _words(text):
        found.extend(_pieces(word, vocabulary, unknown))
        if len(found) >= most - 2:
            break
    return [vocabulary["[CLS]"], *found[: most - 2], vocabulary["[SEP]"]]


def _words(text: str) -> Iterator[str]:
    """Lower-cased words without accents; each punctuation mark and each CJK character is a word."""
    word: list[str] = []
    for character in unicodedata.normalize("NFD", _spaced(text).lower()):
        category = unicodedata.category(character)
        if category == "Mn":
            continue
        if character.isspace():
            if word:
                yield "".join(word)
                word = []
        elif _is_punctuation(character, category):
            if word:
                yield "".join(word)
                word = []
            yield character
        else:
            word.append(character)
    if word:
        yield "".join(word)


def _spaced(text: str) -> str:
    made: list[str] = []
    for character in text:
        if _is_cjk(ord(character)):
            made.append(f" {character} ")
        elif character in "\t\n\r" or unicodedata.category(character) == "Zs":
            made.append(" ")
        elif character not in "\0\ufffd" and not unicodedata.category(character).startswith("C"):
            made.append(character)
    return "".join(made)


def _is_punctuation(character: str, category: str) -> bool:
    code = ord(character)
    ascii_marks = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_marks or category.startswith("P")


def _is_cjk(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


def _pieces(word: str, vocabulary: Mapping[str, int], unknown: int) -> list[int]:
    """The longest known piece first, then the longest one that goes on from there."""
    if len(word) > _LONGEST_WORD:
        return [unknown]
    found: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            number = vocabulary.get(word[start:end] if start == 0 else f"##{word[start:end]}")
            if number is not None:
                found.append(number)
                start = end
                break
        else:
            return [unknown]
    return found
