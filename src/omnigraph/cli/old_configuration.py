"""`omnigraph.yaml` of older releases: nothing reads it. Where one is found, say how its content moves to a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

OLD_FILE = "omnigraph.yaml"


def guidance(folder: Path) -> str | None:
    """How to move the old file of a folder; None where there is none, or a cluster.yaml beside it already."""
    try:
        if not (folder / OLD_FILE).is_file() or (folder / "cluster.yaml").is_file():
            return None
    except OSError:
        return None
    content = _content(folder / OLD_FILE)
    graphs = content.get("graphs")
    named = graphs if isinstance(graphs, dict) and graphs else {"my-graph": None}
    lines = [
        f"{OLD_FILE} is read by nothing in this release: a deployment is a cluster. Write a cluster.yaml beside it:",
        "",
        "  version: 1",
        "  metadata: { name: my-cluster }",
        "  graphs:",
    ]
    for name in named:
        lines += [f"    {name}:", f"      schema: {name}.pg        # omnigraph schema show GRAPH > {name}.pg"]
        if content.get("queries"):
            lines.append("      queries: queries/        # your .gq files")
    if content.get("policy"):
        lines += [
            "  policies:",
            f"    base: {{ file: policy.yaml, applies_to: [{', '.join(map(str, named))}] }}",
        ]
    for name, graph in named.items():
        uri = graph.get("uri") if isinstance(graph, dict) else None
        if uri:
            lines += ["", f"Bring the graph along: omnigraph copy {uri} graphs/{name}.omni"]
    lines += [
        "",
        "Then: omnigraph cluster import, omnigraph cluster plan, omnigraph cluster apply. Servers and tokens are yours",
        f"alone now: omnigraph login. When all of it is moved, remove {OLD_FILE}.",
    ]
    return "\n".join(lines)


def _content(path: Path) -> dict[str, Any]:
    """What the file says, as far as it can be read."""
    from omnigraph.errors import OmniGraphError
    from omnigraph.yaml_text import read_yaml

    try:
        found = read_yaml(path, "configuration")
    except OmniGraphError:
        return {}
    return found if isinstance(found, dict) else {}
