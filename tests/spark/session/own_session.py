"""One round of everything that a session is used for, told as plain values: two sessions agree, or their values differ.

Run as a program it is given settings (`spark.a=1`) and makes a session as a user does, with nothing of ours in it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og

SCHEMA = """
node Thing {
    slug: String @key
    fullName: String?
    moment: DateTime?
    day: Date?
    count: U64?
    ratio: F32?
    vector: Vector(2)?
    tags: [String]?
}
edge Next: Thing -> Thing { since: DateTime?  @unique(src, dst) }
"""
FILE = [
    {
        "type": "Thing",
        "data": {
            "slug": f"t{n}",
            "fullName": None if n == 3 else f"Ärger {n}",
            "moment": f"2026-03-29T0{n}:30:00.00000{n}Z",
            "day": f"2026-03-2{n}",
            "count": 2**64 - 1 - n,
            "ratio": n / 4,
            "vector": [n, 0.5],
            "tags": ["a", f"b{n}"],
        },
    }
    for n in range(4)
]
EDGES = [
    {"edge": "Next", "from": f"t{n}", "to": f"t{(n + 1) % 4}", "data": {"since": "1883-11-18T12:00:00Z"}}
    for n in range(4)
]
QUERY = """
query q($after: DateTime, $day: Date) {
    match {
        $a: Thing
        $a $e:next $b
        $a.moment > $after
        $a.day > $day
        $a.moment > datetime("2026-03-29T00:45:00Z")
    }
    return {
        $a.slug, $a.fullName, $a.moment, $a.day, $a.count, $a.ratio, $a.vector, $a.tags, $e.since, $b
        $a.count % 7 as rest
    }
    order { $a.slug }
}
"""
GROUPS = """
query q() {
    match { $a: Thing }
    return { $a.ratio, count($a) as things, max($a.moment) as last, collect($a.fullName) as names }
    order { $a.ratio }
}
"""
AFTER = {"after": datetime(2026, 3, 29, 0, 30, 0, tzinfo=UTC), "day": date(2026, 3, 20)}


FRAME = [(f"f{n}", f"frame {n}", datetime(2026, 10, 25, n, tzinfo=UTC), date(1900, 1, 1 + n)) for n in range(3)]
COLUMNS = ("slug", "fullName", "moment", "day")
MOMENT = datetime(2026, 10, 25, 1, 30, 0, 7, tzinfo=UTC)
STREAMED = [
    {"type": "Thing", "data": {"slug": "s0", "fullName": "Ö", "moment": MOMENT.isoformat(), "tags": ["x"]}},
    {"type": "Thing", "data": {"slug": "s1", "vector": [0.25, 1]}},
]
STREAMED_ROWS = [{"slug": "s1", "moment": MOMENT, "day": date(1900, 1, 1)}]


def round_of_work(session: Any, place: Path) -> dict[str, Any]:
    """Load files and frames, write and read by the data source, merge, query, export; what is seen at each step."""
    place.mkdir(exist_ok=True)
    source = place / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in [*FILE, *EDGES]))
    given = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in FRAME])
    pq.write_table(given, place / "frame.parquet")
    frame = session.read.parquet(str(place / "frame.parquet")).selectExpr(
        "*", "cast(9 as decimal(20,0)) as count", "cast(0.5 as float) as ratio"
    )
    with og.init(place / "graph", schema=SCHEMA) as graph:
        counts = [
            graph.load(source, mode="append", engine="spark").rows_loaded,
            graph.load(frame, mode="append", type="Thing", engine="spark").rows_loaded,
        ]
        written = frame.selectExpr("concat('w', slug) as slug", "moment", "day")
        written.write.format("omnigraph").option("type", "Thing").mode("append").save(str(place / "graph"))
        graph.branch_create("side")
        changed = frame.selectExpr("slug", "'changed' as fullName").where("slug <> 'f2'")
        counts.append(graph.load(changed, mode="merge", type="Thing", branch="side", engine="spark").rows_loaded)
        graph.merge("side", engine="spark")
        read = session.read.format("omnigraph").option("type", "Thing").load(str(place / "graph"))
        since = "moment >= timestamp_ltz'2026-10-25T01:00:00Z' and fullName like 'change%'"
        found = sorted(row.slug for row in read.where(since).collect())
        streamed = _streams(session, graph, place)
        return {"counts": counts, "read": found, "streamed": streamed, **_seen(graph, place, "spark")}


def _streams(session: Any, graph: og.Graph, place: Path) -> list[list[Any]]:
    """JSON records and rows of a type into the graph, and the changes of that type out of it again."""
    now = {"availableNow": True}
    for name in ("lines", "rows"):
        (place / name).mkdir()
    (place / "lines" / "1.jsonl").write_text("".join(json.dumps(record) + "\n" for record in STREAMED))
    pq.write_table(pa.Table.from_pylist(STREAMED_ROWS), place / "rows" / "1.parquet")
    lines = session.readStream.text(str(place / "lines"))
    graph.load_stream(lines, checkpoint=str(place / "ck-lines"), trigger=now).wait()
    rows = session.readStream.schema("slug string, moment timestamp_ltz, day date").parquet(str(place / "rows"))
    graph.load_stream(rows, checkpoint=str(place / "ck-rows"), type="Thing", mode="merge", trigger=now).wait()
    changes = session.readStream.format("omnigraph").options(type="Thing", startingFrom="beginning").load(graph.uri)
    chosen = changes.selectExpr("_version", "_op", "slug", "fullName", "unix_micros(moment) AS at", "tags", "vector")
    seen = chosen.writeStream.format("memory").queryName("seen").option("checkpointLocation", str(place / "ck-out"))
    seen.trigger(**now).start().awaitTermination()
    found = session.table("seen").where("slug LIKE 's%'").orderBy("_version", "slug").drop("_version").collect()
    return [list(row) for row in found]


def round_in_process(place: Path) -> dict[str, Any]:
    """What every session has to see."""
    things = [dict(zip(COLUMNS, row, strict=True)) for row in FRAME]
    with og.init(place / "graph", schema=SCHEMA) as graph:
        graph.load([*FILE, *EDGES], mode="append", engine="local")
        graph.load([{**row, "count": 9, "ratio": 0.5} for row in things], mode="append", type="Thing", engine="local")
        written = [{"slug": f"w{row['slug']}", "moment": row["moment"], "day": row["day"]} for row in things]
        graph.load(written, mode="append", type="Thing", engine="local")
        changed = [{"slug": slug, "fullName": "changed"} for slug in ("f0", "f1")]
        graph.load(changed, mode="merge", type="Thing", engine="local")
        graph.load(STREAMED, mode="append", engine="local")
        graph.load(STREAMED_ROWS, mode="merge", type="Thing", engine="local")
        at = round(MOMENT.timestamp()) * 1_000_000 + MOMENT.microsecond
        streamed = [
            ["insert", "s0", "Ö", at, ["x"], None],
            ["insert", "s1", None, None, None, [0.25, 1.0]],
            ["update", "s1", None, at, None, [0.25, 1.0]],
        ]
        return {"counts": [8, 3, 2], "read": ["f1"], "streamed": streamed, **_seen(graph, place, "local")}


def _seen(graph: og.Graph, place: Path, engine: Any) -> dict[str, Any]:
    rows = graph.query(QUERY, params=AFTER, engine=engine).to_arrow().to_pylist()
    groups = graph.query(GROUPS, engine=engine).to_arrow().to_pylist()
    out = place / "out" / "all.jsonl" if engine == "local" else place / "out"
    out.parent.mkdir(exist_ok=True)
    graph.export(str(out), engine=engine)
    lines = [line for path in (place / "out").rglob("*.jsonl") for line in path.read_text().splitlines()]
    return {"rows": rows, "groups": groups, "exported": sorted(line for line in lines if '"type"' in line)}


def main() -> None:
    """A session by the book."""
    from pyspark.sql import SparkSession

    place, *given = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for setting in ["spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", *given]:
        builder = builder.config(*setting.split("=", 1))
    session = builder.getOrCreate()
    print(repr(round_of_work(session, Path(place))))
    session.stop()


if __name__ == "__main__":
    main()
