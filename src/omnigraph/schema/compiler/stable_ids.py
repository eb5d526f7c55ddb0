"""Stable ids: minted once from one counter, kept by name and across `@rename_from`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from omnigraph.diagnostics import Span
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, Property
from omnigraph.schema.compiler.findings import Findings
from omnigraph.schema.compiler.properties import PropertyDraft
from omnigraph.schema.syntax.syntax import Literal

Old = TypeVar("Old", NodeType, EdgeType, Property)


class IdMinter:
    """Gives every type and property the id it had in the accepted schema, or a new one."""

    def __init__(self, previous: Catalog | None, findings: Findings, unused_id: int = 1) -> None:
        self._previous = previous
        self._findings = findings
        self._claimed: dict[str, str] = {}
        self._unused_id = unused_id
        self.next_id = previous.next_id if previous else 1

    def node(self, name: str, rename: Literal | None, declared: Collection[str]) -> tuple[str, NodeType | None]:
        """The id of a node type, and the accepted type that it continues."""
        if self._previous is None:
            return self._mint("n"), None
        old = self._match(
            name, rename, self._previous.node, declared, [n.name for n in self._previous.nodes], "node type"
        )
        return (old.id if old else self._mint("n")), old

    def edge(self, name: str, rename: Literal | None, declared: Collection[str]) -> tuple[str, EdgeType | None]:
        """The id of an edge type, and the accepted type that it continues. Names are compared without case."""
        if self._previous is None:
            return self._mint("e"), None
        folded = {other.lower() for other in declared}
        old = self._match(
            name, rename, self._previous.edge, folded, [e.name for e in self._previous.edges], "edge type"
        )
        return (old.id if old else self._mint("e")), old

    def properties(self, drafts: Mapping[str, PropertyDraft], old_type: GraphType | None) -> dict[str, str]:
        """The ids of a type's properties by name."""
        ids: dict[str, str] = {}
        known = old_type.by_name if old_type else {}
        for name, draft in drafts.items():
            old = None
            if old_type is not None:
                old = self._match(name, draft.rename_from, known.get, drafts.keys(), list(known), "property")
            ids[name] = old.id if old else self._mint("p")
        return ids

    def _match(
        self,
        name: str,
        rename: Literal | None,
        find: Callable[[str], Old | None],
        declared: Collection[str],
        known: list[str],
        what: str,
    ) -> Old | None:
        same = find(name)
        if same is not None or rename is None:
            return same
        old_name = str(rename.value)
        old = find(old_name)
        if old is None:
            message = f"the accepted schema has no {what} `{old_name}`, so `{name}` is new and nothing is renamed"
            self._findings.warning("S172", message, rename.span, self._findings.suggest(old_name, known))
            return None
        if old.name in declared or old.name.lower() in declared:
            message = f"`{name}` cannot be renamed from `{old_name}`: that {what} is still declared"
            self._findings.error("S170", message, rename.span, "remove the old declaration, or the annotation")
            return None
        if not self._claim(old.id, name, old_name, rename.span):
            return None
        return old

    def _claim(self, id_: str, name: str, old_name: str, span: Span) -> bool:
        first = self._claimed.setdefault(id_, name)
        if first != name:
            message = f"`{first}` and `{name}` are both renamed from `{old_name}`"
            self._findings.error("S171", message, span, "only one of them can be it")
        return first == name

    def _mint(self, prefix: str) -> str:
        # The counter stays where it is while nothing is minted: the same schema keeps its digest.
        number = max(self.next_id, self._unused_id)
        self.next_id = number + 1
        return f"{prefix}{number}"
