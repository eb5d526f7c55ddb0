"""A difference as a program that anybody can run: the public API and nothing else."""

from __future__ import annotations

from tests.differential.hunt import Found
from tests.differential.printing import arguments, deletion, query
from tests.differential.rows import Branch, Compact, Delete, Index, Load


def script(found: Found) -> str:
    """The text of the program. It fails as long as the difference is there."""
    lines = [f"# seed {found.seed}, query {found.number}, {found.way}: {found.kind}"]
    if found.answer.error:
        lines.append("# " + found.answer.error.replace("\n", "\n# "))
    lines.append("import datetime\nimport os\nimport tempfile\n")
    if found.way in ("csr", "indexed"):
        lines.append(f'os.environ["OMNIGRAPH_TRAVERSAL_MODE"] = "{found.way}"')
    engine = "spark" if found.way == "spark" else "local"
    lines.append("import omnigraph as og\n")
    lines.append(f'SCHEMA = """\n{found.world.schema.text()}"""')
    lines.append(f"QUERY = r'''\n{query(found.query)}\n'''")
    lines.append('g = og.init(tempfile.mkdtemp() + "/graph.omni", schema=SCHEMA)')
    branch = "main"
    for step in found.world.steps:
        match step:
            case Load(rows):
                records = "".join(f"        {row.record(found.world.schema)!r},\n" for row in rows)
                lines.append(f"g.load(\n    [\n{records}    ],\n    mode='merge', branch={branch!r},\n)")
            case Delete(kind, id_):
                lines.append(f"g.mutate({deletion(kind, id_)!r}, branch={branch!r})")
            case Index():
                lines.append(f"g.ensure_indices({branch!r})")
            case Compact():
                lines.append(f"g.optimize({branch!r})")
            case Branch(name):
                lines.append(f"g.branch_create({name!r}, from_={branch!r})")
                branch = name
    asked = f"g.query(QUERY, params={arguments(found.query)!r}, branch={branch!r}, engine={engine!r}).rows()"
    lines.append(f"expected = {found.expected!r}")
    lines.append(f"found = {asked}")
    lines.append('print("expected", expected)\nprint("found   ", found)\nassert found == expected, datetime')
    return "\n".join(lines) + "\n"
