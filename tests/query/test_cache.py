"""The cache of compiled queries."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import QueryTypeError
from omnigraph.query.compiled import CacheKey, QueryCache
from omnigraph.query.ir import CompiledQuery
from tests.query.sample import compiled


def text(name: str) -> str:
    return f"query {name} {{ match {{ $p: Person }} return {{ $p }} }}"


def test_a_query_is_compiled_once_per_text_schema_and_name() -> None:
    cache = QueryCache()
    calls: list[str] = []

    def get(source: str, digest: str, name: str | None) -> CompiledQuery:
        def compile() -> CompiledQuery:
            calls.append(source)
            return compiled(source)

        return cache.get(CacheKey(source, digest, name), compile)

    first = get(text("a"), "s1", None)
    assert get(text("a"), "s1", None) is first
    get(text("a"), "s2", None)
    get(text("a"), "s1", "a")
    get(text("b"), "s1", None)
    assert len(calls) == 4
    assert len(cache) == 4


def test_the_least_recently_used_goes_first() -> None:
    cache = QueryCache(2)
    keys = {name: CacheKey(text(name), "s", None) for name in "abc"}
    query = compiled(text("a"))
    cache.get(keys["a"], lambda: query)
    cache.get(keys["b"], lambda: query)
    cache.get(keys["a"], lambda: query)
    cache.get(keys["c"], lambda: query)
    missed: list[str] = []
    for name in "acb":
        cache.get(keys[name], lambda name=name: (missed.append(name), query)[1])  # type: ignore[misc]
    assert missed == ["b"]
    cache.clear()
    assert len(cache) == 0


def test_errors_are_not_kept() -> None:
    cache = QueryCache()
    key = CacheKey("x", "s", None)
    with pytest.raises(QueryTypeError):
        cache.get(key, lambda: compiled("query q { match { $p: Persn } return { $p } }"))
    assert len(cache) == 0
    assert cache.get(key, lambda: compiled(text("a"))).name == "a"


def test_a_cache_holds_something() -> None:
    with pytest.raises(ValueError, match="at least one"):
        QueryCache(0)


def test_threads_can_share_it() -> None:
    cache = QueryCache(3)
    query = compiled(text("a"))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(300):
                key = CacheKey(str((i * seed) % 7), "s", None)
                assert cache.get(key, lambda: query) is query
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(cache) <= 3
