"""What Lance keeps of tables in memory is bounded, however many versions a process makes."""

from pathlib import Path

import omnigraph as og
from omnigraph.config import override

COMMITS = 60
LIMIT = 400_000


def kept(place: Path, limit: int) -> int:
    """Bytes that the session keeps after many small commits of one table."""
    with override(metadata_cache=limit), og.init(place, schema="node Person { slug: String @key }") as graph:
        for number in range(COMMITS):
            graph.mutate("query q($s: String) { insert Person { slug: $s } }", s=str(number))
            graph.query("query q { match { $p: Person } return { $p.slug } }").rows()
        return graph._store.tables.handles.session.size_bytes()


def test_versions_do_not_pile_up(tmp_path: Path) -> None:
    assert kept(tmp_path / "much", 64 << 20) > 2 * LIMIT, "the commits of this test leave enough to tell"
    assert kept(tmp_path / "little", LIMIT // 4) <= LIMIT, "indexes have a cache of their own"
