"""The sample data of `omnigraph demo`: made up, the same every time, as large as asked."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

_FIRST = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Ken", "Frances", "Tony", "Radia", "Donald", "Shafi", "Leslie")
_LAST = ("Lovett", "Hopkins", "Turner", "Dyer", "Lisk", "Thorne", "Alden", "Hoar", "Perl", "Knox", "Gold", "Lamp")
_TOPICS = ("graphs", "compilers", "databases", "networks", "proofs", "music", "mountains", "bread")
_COMPANIES = ("Northwind", "Acme", "Globex", "Initech", "Umbra", "Stark", "Wayne", "Tyrell")


def schema_source() -> str:
    """The schema of the sample."""
    return files("omnigraph.cli.demo").joinpath("schema.pg").read_text(encoding="utf-8")


def query_source() -> str:
    """The queries of the sample."""
    return files("omnigraph.cli.demo").joinpath("queries.gq").read_text(encoding="utf-8")


def write_sample(path: Path, people: int, seed: int = 7) -> int:
    """Write the sample as JSON lines and return how many records it has."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for record in sample_records(people, seed):
            out.write(json.dumps(record) + "\n")
            count += 1
    return count


def sample_records(people: int, seed: int = 7) -> Iterator[dict[str, object]]:
    """People, companies, who knows whom and who works where."""
    rng = random.Random(seed)
    for index, name in enumerate(_COMPANIES):
        founded = f"{1950 + 7 * index}-03-01"
        yield {"type": "Company", "data": {"slug": name.lower(), "name": name, "founded": founded}}
    for index in range(people):
        topics = rng.sample(_TOPICS, 2)
        yield {
            "type": "Person",
            "data": {
                "slug": f"p{index}",
                "name": f"{rng.choice(_FIRST)} {rng.choice(_LAST)}",
                "age": rng.randint(18, 80),
                "status": "retired" if rng.random() < 0.1 else "active",
                "bio": f"Works on {topics[0]} and loves {topics[1]}",
                "taste": [round(rng.random(), 3) for _ in range(4)],
            },
        }
    for index in range(people):
        if index % 50 == 0:
            continue
        for friend in {rng.randrange(people) for _ in range(3)} - {index}:
            day = f"{rng.randint(2000, 2025)}-{rng.randint(1, 12):02d}-01"
            yield {"edge": "Knows", "from": f"p{index}", "to": f"p{friend}", "data": {"since": day}}
        if rng.random() < 0.9:
            yield {"edge": "WorksAt", "from": f"p{index}", "to": rng.choice(_COMPANIES).lower()}
