"""Lines about long work: none about short work, and the place to watch it first."""

import time

import pytest

from omnigraph.cli.show.progress import progress_line, time_taken
from omnigraph.write.progress import Progress
from omnigraph.write.progress_lines import lines


def look(records: int, *, finished: bool = False, ui: str | None = None) -> Progress:
    return Progress("load", "write", records, 2_000 * records, 1, 4, 2.0, finished, ui=ui)


def test_short_work_says_nothing() -> None:
    told: list[str] = []
    report = lines(told.append, every=3600, only_if_long=True)
    report(look(10, ui="http://localhost:4040"))
    report(look(20, finished=True))
    assert told == []


def test_long_work_says_where_it_is_watched_and_how_far_it_is() -> None:
    told: list[str] = []
    report = lines(told.append, every=0, only_if_long=True)
    report(look(1_000, ui="http://localhost:4040"))
    report(look(3_000, finished=True, ui="http://localhost:4040"))
    assert told == [
        "load: watch it at http://localhost:4040",
        "load: write, 1,000 records, 2.0 MB, 500 records/s, 1.0 MB/s, tasks 1/4",
        "load: done in 2.0 s, 3,000 records, 6.0 MB, 1,500 records/s, 3.0 MB/s, tasks 1/4",
    ]


def test_the_command_line_writes_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with progress_line(shown=True) as report:
        assert report is not None
        monkeypatch.setattr(time, "monotonic", lambda: began + 11)
        report(look(1_000))
    assert capsys.readouterr().err.startswith("load: write, 1,000 records")
    with progress_line(shown=False) as report:
        assert report is None


def test_what_a_load_took_is_told_when_it_took_a_while() -> None:
    assert time_taken(50, 0.4) == ""
    assert time_taken(3_000_000, 12.0) == ", 3,000,000 records in 12.0 s, 250,000 a second"
