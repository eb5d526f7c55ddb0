"""Which files hold an id, against a plain account of what was kept and forgotten."""

from __future__ import annotations

import random
import threading

import pytest

from omnigraph.storage.handles.ids_of_files import IDS_OF_A_FILE, IdsOfFiles


@pytest.mark.parametrize("seed", range(4))
def test_holders_are_those_files_that_are_still_kept(seed: int) -> None:
    chosen = random.Random(seed)
    kept = IdsOfFiles(60)
    said: dict[str, tuple[str, ...]] = {}
    moments: dict[tuple[str, ...], int] = {}
    for step in range(300):
        ids = tuple(dict.fromkeys(f"i{chosen.randrange(20)}" for _ in range(chosen.randrange(1, 6))))
        said[f"f{step}"] = ids
        kept.keep({f"f{step}": ids})
        there = {file: ids for file, ids in said.items() if kept.of(file) is not None}
        assert all(kept.of(file) == ids for file, ids in there.items())
        assert f"f{step}" in there
        assert len(kept) == sum(map(len, there.values()))
        assert sum(len(ids) + IDS_OF_A_FILE for ids in there.values()) <= 60
        asked = tuple(chosen.sample(sorted(said), min(len(said), 3)))
        wanted = [f"i{number}" for number in range(21)]
        held = kept.holders(wanted, asked, moments.get(asked))
        assert {each: set(files) for each, files in held.files.items()} == {
            each: {file for file, ids in there.items() if each in ids} for each in wanted
        }
        assert set(held.unknown) == set(asked) - set(there)
        if not held.unknown:
            moments[asked] = held.moment


def test_what_was_complete_is_looked_through_again_when_a_file_was_forgotten() -> None:
    kept = IdsOfFiles(3 * (1 + IDS_OF_A_FILE))
    kept.keep({"a": ["1"], "b": ["2"]})
    complete = kept.holders(["1"], ["a", "b"])
    assert not complete.unknown
    kept.keep({"c": ["3"]})
    assert kept.holders(["1"], ["a", "b"], complete.moment).files == {"1": ("a",)}
    kept.keep({"d": ["4"]})
    again = kept.holders(["1", "2"], ["a", "b"], complete.moment)
    assert again.unknown == ("a",)
    assert again.files == {"1": (), "2": ("b",)}


def test_what_is_used_is_kept_longest() -> None:
    kept = IdsOfFiles(3 * (1 + IDS_OF_A_FILE))
    kept.keep({"a": ["1"], "b": ["2"], "c": ["3"]})
    assert not kept.holders([], ["a"]).unknown
    kept.keep({"d": ["4"]})
    assert kept.of("a") is not None
    assert kept.of("b") is None


def test_an_id_is_never_said_to_be_nowhere_while_its_file_is_said_to_be_known() -> None:
    kept = IdsOfFiles(10 * (1 + IDS_OF_A_FILE))
    stop = threading.Event()
    wrong: list[object] = []

    def push() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            kept.keep({f"other-{number}": [f"x{number}"]})

    def look() -> None:
        moment: int | None = None
        for _ in range(3_000):
            held = kept.holders(["mine"], ["file"], moment)
            if held.unknown:
                kept.keep({"file": ["mine"]})
            else:
                moment = held.moment
                if held.files["mine"] != ("file",):
                    wrong.append(held)

    pushing = threading.Thread(target=push)
    looking = [threading.Thread(target=look) for _ in range(3)]
    for thread in (pushing, *looking):
        thread.start()
    for thread in looking:
        thread.join()
    stop.set()
    pushing.join()
    assert not wrong
