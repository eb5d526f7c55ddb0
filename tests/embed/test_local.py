"""The local model: what comes out is what the published model makes, and nothing is asked of a network."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.local import LocalModel, _installed
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.embed.word_pieces import piece_numbers, read_vocabulary
from omnigraph.errors import BadRequest

PUBLISHED = [0.0676569, 0.0634959, 0.0487131, 0.0793049]
"""How the vector of "This is an example sentence" begins, as the model's own library computes it."""


@pytest.fixture(scope="module")
def local() -> EmbeddingClient:
    return EmbeddingClient(EmbeddingSettings("local"))


def test_vectors_are_those_of_the_published_model(local: EmbeddingClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    [vector] = local.embed(["This is an example sentence"], dim=384)
    assert vector[:4] == pytest.approx(PUBLISHED, abs=1e-5)


def test_meaning_is_near_and_company_in_a_batch_changes_nothing(local: EmbeddingClient) -> None:
    texts = [
        "A man is eating food.",
        "A man is eating a piece of bread.",
        "The girl is carrying a baby.",
        "",
        "猫 🐈 é",
    ]
    together = np.array(local.embed(texts, dim=384))
    alone = np.array([local.embed([text], dim=384)[0] for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    near, far = together[0] @ together[1], together[0] @ together[2]
    assert near == pytest.approx(0.7553, abs=1e-3)
    assert far < 0.1


def test_texts_are_cut_into_the_pieces_of_the_vocabulary() -> None:
    vocabulary = read_vocabulary(_installed() / "vocab.txt")
    names = {number: piece for piece, number in vocabulary.items()}

    def pieces(text: str) -> list[str]:
        return [names[number] for number in piece_numbers(text, vocabulary, 256)]

    assert pieces("Déjà-vu embeddings!") == [
        "[CLS]",
        "de",
        "##ja",
        "-",
        "vu",
        "em",
        "##bed",
        "##ding",
        "##s",
        "!",
        "[SEP]",
    ]
    assert pieces("\x00a\u200b 日本") == ["[CLS]", "a", "日", "本", "[SEP]"]
    assert pieces("x" * 101) == ["[CLS]", "[UNK]", "[SEP]"]
    assert len(pieces("word " * 1000)) == 256
    assert pieces("") == ["[CLS]", "[SEP]"]


def test_another_model_or_size_is_refused() -> None:
    with pytest.raises(BadRequest, match="384 numbers, and the property holds 3"):
        EmbeddingClient(EmbeddingSettings("local")).embed(["a"], dim=3)
    with pytest.raises(BadRequest, match="has the model all-MiniLM-L6-v2, not `huge`"):
        EmbeddingClient(EmbeddingSettings("local", "huge")).embed(["a"], dim=384)


def test_a_missing_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.embed.local.PACKAGE", "no_such_package_of_weights")
    with pytest.raises(BadRequest, match=r"omnigraph\[local-embed\]"):
        LocalModel()
