"""Queries stop when they are told to, and when they would hold too much."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import Cancelled, ResourceLimit
from omnigraph.read.state.control import CancelToken
from tests.read.asking import graph, person, run

MANY = graph([person(f"p{n}") for n in range(2000)], teams=[f"t{n}" for n in range(2000)])
PRODUCT = "match { $p: Person  $t: Team } return { count($p) as n }"


def test_a_product_that_is_too_large_is_refused_before_it_is_made():
    with pytest.raises(ResourceLimit) as caught:
        run(MANY, PRODUCT, memory_limit=1_000_000)
    assert caught.value.details["limit"] == "query_memory"
    assert caught.value.details["limit_value"] == 1_000_000
    assert "OMNIGRAPH_QUERY_MEMORY" in caught.value.message
    assert "more selective" in caught.value.message


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_an_expansion_that_is_too_large_is_refused(mode):
    names = [f"p{n}" for n in range(200)]
    dense = graph([person(name) for name in names], [(a, b) for a in names for b in names])
    with pytest.raises(ResourceLimit):
        run(
            dense,
            "match { $a: Person  $a knows $b  $b knows $c } return { count($a) as n }",
            mode,
            memory_limit=2_000_000,
        )


def test_within_the_limit_nothing_is_refused():
    assert run(MANY, PRODUCT, memory_limit=1_000_000_000).scalar() == 4_000_000


def test_a_cancelled_query_stops():
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        run(MANY, PRODUCT, cancel=token)


def test_a_query_is_cancelled_from_another_thread():
    names = [f"p{n}" for n in range(400)]
    dense = graph([person(name) for name in names], [(a, b) for a in names[:60] for b in names])
    token = CancelToken()
    timer = threading.Timer(0.05, token.cancel)
    timer.start()
    text = "match { $a: Person  $a knows{1,4} $b } return { count($a) as n }"

    def run_until_cancelled() -> None:
        while True:
            run(dense, text, "csr", cancel=token)

    with pytest.raises(Cancelled):
        run_until_cancelled()
