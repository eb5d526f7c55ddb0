"""Writing to a graph behind a server: mutations, loads, embedding, and what the schema is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.choices import EmbedMode, Engine, Mode, Target
from omnigraph.client.remote_held import RemoteHeld
from omnigraph.client.sent_records import sent
from omnigraph.client.wire_arguments import condition, parameters, state_name
from omnigraph.errors import BadRequest
from omnigraph.sources import named_in_errors, query_source, schema_source

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migration.migrate import MigrationPlan
    from omnigraph.write.embedding.embed_results import EmbedResult
    from omnigraph.write.results import LoadResult, MutationResult
    from omnigraph.write.schema.schema_apply import SchemaApplyResult


class RemoteWrites(RemoteHeld):
    """Writing; `RemoteGraph` does it."""

    def mutate(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        **more: Any,
    ) -> MutationResult:
        """Run a mutation query: one commit, or none when it changes nothing."""
        from omnigraph.client.wire_values import mutation_result

        given = query_source(source)
        own = {"name": name, "branch": branch, "if_commit": if_commit}
        values = parameters("mutate", given.text, params, more, own)
        body = {"query": given.text, "name": name, "params": values, "branch": self._place(branch)}
        with named_in_errors(given.filename):
            return mutation_result(self._transport.post("/mutate", body, condition(if_commit)))

    def load(
        self,
        data: Any,
        *,
        mode: Mode,
        type: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        columns: Mapping[str, str] | None = None,
        branch: str | None = None,
        from_: str | None = None,
        engine: Engine = "auto",
        if_commit: str | None = None,
        progress: Any = None,
        batch: tuple[str, int] | None = None,
    ) -> LoadResult:
        """Load records as one commit, or nothing at all when one of them breaks a rule. They are sent as a stream.

        With `batch`, the name of a stream of loads and the number of this one in it, it can be repeated when no answer
        came: what the branch has is skipped.
        """
        from omnigraph.client.wire_values import load_result

        if from_ is not None and branch is None:
            raise BadRequest(f"from_={from_!r} makes a branch for the load: name it with branch=…")
        lines = sent(data, type=type, columns=columns)
        params = {"mode": mode, "branch": self._place(branch), "from": from_, "type": type, "src": src, "dst": dst}
        if batch is not None:
            params |= {"stream": batch[0], "batch": str(batch[1])}
        return load_result(self._transport.send("/load/ndjson", lines, params, condition(if_commit)))

    def embed(
        self,
        types: Collection[str] | None = None,
        property: str | None = None,
        *,
        mode: EmbedMode = "missing",
        branch: str | None = None,
        dry_run: bool = False,
        engine: Engine = "auto",
        progress: Any = None,
    ) -> EmbedResult:
        """Make the vectors of `@embed` properties, by the server's provider. The answer comes when all are made."""
        from omnigraph.client.wire_values import embed_result

        body = {
            "types": list(types) if types else None,
            "property": property,
            "mode": mode,
            "branch": self._place(branch),
            "dry_run": dry_run,
        }
        return embed_result(self._transport.post("/embed", body))

    def schema_source(self, at: Target = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        place = {"snapshot": state_name(at)} if at is not None else {"branch": self._branch}
        return str(self._transport.get("/schema", **place)["schema_source"])

    def catalog(self, at: Target = None) -> Catalog:
        """The schema of a snapshot, compiled here."""
        from omnigraph.schema.compiler.compile import compile_schema

        return compile_schema(self.schema_source(at))

    def plan_schema(
        self, source: str | PathLike[str], *, branch: str | None = None, allow_data_loss: bool = False
    ) -> MigrationPlan:
        """The steps from the accepted schema of a branch to another one. Changes nothing."""
        from omnigraph.schema.migration.migrate import plan_from_json

        desired = schema_source(source)
        body = _schema_body(desired.text, self._place(branch), allow_data_loss)
        with named_in_errors(desired.filename):
            return plan_from_json(self._transport.post("/schema/plan", body))

    def apply_schema(
        self, source: str | PathLike[str], *, branch: str | None = None, allow_data_loss: bool = False
    ) -> SchemaApplyResult:
        """Make another schema the schema of a branch. Other branches keep theirs until they are merged."""
        from omnigraph.client.wire_values import schema_applied

        desired = schema_source(source)
        body = _schema_body(desired.text, self._place(branch), allow_data_loss)
        with named_in_errors(desired.filename):
            return schema_applied(self._transport.post("/schema/apply", body))


def _schema_body(source: str, branch: str, allow_data_loss: bool) -> dict[str, Any]:
    return {"schema_source": source, "branch": branch, "allow_data_loss": allow_data_loss}
