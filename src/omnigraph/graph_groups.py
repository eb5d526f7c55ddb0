"""What a handle can do, grouped as its user thinks of it. Each group is a second name for methods of the Graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.ledger.values import BranchRef


class Group:
    """The common part: says what it offers."""

    def __repr__(self) -> str:
        offered = [name for name in dir(self) if not name.startswith("_")]
        return f"<{type(self).__name__}: {', '.join(offered)}>"


class BranchGroup(Group):
    """`g.branches`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.create = graph.branch_create
        self.delete = graph.branch_delete
        self.merge = graph.merge
        self.revert = graph.revert
        self.restore = graph.restore
        self.cherry_pick = graph.cherry_pick
        self.diff = graph.diff
        self.sync = graph.sync_branch

    def list(self, *, actor: str | None = None) -> list[BranchRef]:
        """The public branches, sorted by name, with who made them, when and from where."""
        from omnigraph.ledger.branches.branches import list_branches

        return self._graph._readable(list_branches(self._graph._store), actor)

    def _repr_html_(self) -> str:
        from omnigraph.notebook import html_table
        from omnigraph.times import shown

        rows = [
            (ref.name, ref.source_branch, ref.created_by, shown(ref.created_at) if ref.created_at else None)
            for ref in self.list()
        ]
        return html_table(("branch", "from", "made by", "made"), rows)


class SchemaGroup(Group):
    """`g.schema`. Its text is the schema's."""

    def __init__(self, graph: Graph) -> None:
        self.source = graph.schema_source
        self.catalog = graph.catalog
        self.plan = graph.plan_schema
        self.apply = graph.apply_schema

    def __str__(self) -> str:
        return self.source()

    def diagram(self) -> str:
        """The types and edges as a Mermaid diagram."""
        from omnigraph.schema.diagram import schema_diagram

        return schema_diagram(self.catalog())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.catalog()._repr_mimebundle_()


class MaintenanceGroup(Group):
    """`g.maintenance`."""

    def __init__(self, graph: Graph) -> None:
        self.optimize = graph.optimize
        self.ensure_indices = graph.ensure_indices
        self.repair = graph.repair
        self.cleanup = graph.cleanup
        self.verify = graph.verify
        self.recoveries = graph.recoveries
        self.relocate = graph.relocate
