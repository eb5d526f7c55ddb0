"""What Lance's text indexes do, as far as searches lean on it or work around it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation
from lance.file import LanceFileReader
from lance.query import MatchQuery

from omnigraph.schema.search_settings import TextSettings
from omnigraph.storage.reading.analysis import analysis_parameters


def table(path: Path, texts: list[str | None]) -> LanceDataset:
    rows = pa.table({"id": [f"r{number}" for number in range(len(texts))], "text": pa.array(texts, pa.string())})
    return lance.write_dataset(rows, str(path), enable_stable_row_ids=True)


def covered(data: LanceDataset, fragments: list[int]) -> LanceDataset:
    """The table with one more segment of its text index, over these fragments."""
    made = data.create_index_uncommitted(
        "text",
        "INVERTED",
        name="words",
        fragment_ids=fragments,
        replace=True,
        with_position=True,
        **analysis_parameters(TextSettings()),
    )
    segment = data.merge_existing_index_segments([made])
    return LanceDataset.commit(data, LanceOperation.CreateIndex([segment], []), read_version=data.version)


def found(data: LanceDataset, query: MatchQuery) -> list[str]:
    scanner = data.scanner(columns=["id"], full_text_query=query, fast_search=True, disable_scoring_autoprojection=True)
    return sorted(scanner.to_table()["id"].to_pylist())


def test_an_older_segment_tells_of_a_row_that_a_newer_one_covers(tmp_path: Path) -> None:
    data = covered(table(tmp_path / "t", ["old word", "other"]), [0])
    data.merge_insert("id").when_matched_update_all().execute(pa.table({"id": ["r0"], "text": ["new word"]}))
    data = lance.dataset(str(tmp_path / "t"))
    assert found(data, MatchQuery("old", "text")) == []
    data = covered(data, [fragment.fragment_id for fragment in data.get_fragments()][-1:])
    assert found(data, MatchQuery("new", "text")) == ["r0"]
    assert found(data, MatchQuery("old", "text")) == ["r0"], "Coverage.may_be_stale is not needed any more"


def test_a_fuzzy_question_is_right_for_one_word_and_not_for_the_second_of_two(tmp_path: Path) -> None:
    data = covered(table(tmp_path / "t", ["graphs", "日本"]), [0])
    assert found(data, MatchQuery("graph", "text", fuzziness=1, max_expansions=1000)) == ["r0"]
    assert found(data, MatchQuery("日本 graph", "text", fuzziness=None, max_expansions=1000)) == ["r1"]


def test_the_files_of_a_text_index_tell_how_many_texts_and_tokens_it_has(tmp_path: Path) -> None:
    covered(table(tmp_path / "t", ["a b", "", None, "!!", "a"]), [0])
    (docs,) = (tmp_path / "t" / "_indices").glob("*/part_*_docs.lance")
    reader = LanceFileReader(str(docs))
    assert reader.num_rows() == 2
    assert reader.metadata().schema.metadata == {b"total_tokens": b"3"}
