"""The bodies of requests. A key that is not known is told; only an actor that a client sends is passed over."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from omnigraph.diagnostics import did_you_mean
from omnigraph.server.json_requests import MEANS_NOTHING

Snapshot = str | int | None


class Body(BaseModel):
    """What they have in common: a misspelled `branch` must not become the one that is meant where none is named."""

    model_config = ConfigDict(populate_by_name=True, strict=False, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _only_what_is_known(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        fields = _fields(cls)
        found: dict[str, str] = {}
        for name in given:
            field = fields.get(name)
            if field is None and name not in MEANS_NOTHING:
                hint = did_you_mean(str(name), list(fields))
                raise ValueError(f"there is no `{name}` here{f'; {hint}' if hint else ''}")
            if field is not None and found.setdefault(field, name) != name:
                raise ValueError(f"`{found[field]}` and `{name}` are one thing; give one of them")
        return {name: value for name, value in given.items() if name in fields}


@cache
def _fields(body: type[Body]) -> dict[str, str]:
    """The names that a body may have, newest first, and the fields that they mean."""
    found: dict[str, str] = {}
    for field, info in body.model_fields.items():
        names = info.validation_alias or field
        for name in names.choices if isinstance(names, AliasChoices) else [names]:
            found[str(name)] = field
    return {**found, **{field: field for field in body.model_fields if not field.endswith("_")}}


class QueryBody(Body):
    """A read query."""

    query: str = Field(validation_alias=AliasChoices("query", "query_source"), description="The text of the query.")
    name: str | None = Field(
        None, validation_alias=AliasChoices("name", "query_name"), description="Which query of the text."
    )
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: Snapshot = Field(None, description="An older state: a commit, a tag, a branch or a manifest version.")


class ExplainBody(QueryBody):
    """A read query whose plan is wanted."""

    analyze: bool = Field(False, description="Run it, and show the rows and the time of each step.")


class MutateBody(Body):
    """A mutation."""

    query: str = Field(validation_alias=AliasChoices("query", "query_source"), description="The text of the mutation.")
    name: str | None = Field(
        None, validation_alias=AliasChoices("name", "query_name"), description="Which query of the text."
    )
    params: dict[str, Any] | None = None
    branch: str | None = None


class OldQueryBody(Body):
    """A read query, with the field names of older clients."""

    query_source: str = Field(validation_alias=AliasChoices("query_source", "query"))
    query_name: str | None = Field(None, validation_alias=AliasChoices("query_name", "name"))
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: Snapshot = None

    def now(self) -> QueryBody:
        """With the names of today."""
        return QueryBody(
            query=self.query_source,
            name=self.query_name,
            params=self.params,
            branch=self.branch,
            snapshot=self.snapshot,
        )


class LoadBody(Body):
    """Records to load: JSON lines as one text, or a list of records."""

    data: str | list[dict[str, Any]]
    mode: Literal["append", "merge", "overwrite"]
    branch: str | None = None
    from_: str | None = Field(None, alias="from", description="Make `branch` from this one if there is none.")


class EmbedBody(Body):
    """Whose vectors to make: of everything, or of some types and one property; and of which rows."""

    types: list[str] | None = None
    property: str | None = None
    mode: Literal["missing", "stale", "all"] = "missing"
    branch: str | None = None
    dry_run: bool = Field(False, description="Only count rows and tokens; the provider is asked for nothing.")


class ExportBody(Body):
    """What to export: everything, or some types."""

    branch: str | None = None
    snapshot: Snapshot = None
    type_names: list[str] | None = None
    table_keys: list[str] | None = None


class SchemaBody(Body):
    """A schema to become that of the graph."""

    schema_source: str
    branch: str | None = Field(None, description="The branch whose schema it is to be; `main` by default.")
    allow_data_loss: bool = False


class BranchBody(Body):
    """A branch to make."""

    name: str
    from_: str | None = Field(None, alias="from", description="A branch, a commit or a tag; `main` by default.")


class MergeBody(Body):
    """Two branches to merge."""

    source: str
    target: str = "main"
    strategy: Literal["ours", "theirs"] | None = None
    resolutions: dict[str, dict[str, Any]] | None = Field(
        None, description="Answers by table key and row id: ours, theirs, the values of a row, or null to delete it."
    )
    dry_run: bool = False
    delete_branch: bool = False
    granularity: Literal["row", "property"] | None = None


def by_row(resolutions: dict[str, dict[str, Any]] | None) -> dict[tuple[str, str], Any] | None:
    """Answers for single rows, as the engine takes them."""
    found = {
        (table_key, row_id): answer
        for table_key, rows in (resolutions or {}).items()
        for row_id, answer in rows.items()
    }
    return found or None


class RevertBody(Body):
    """What to take back: a commit, or a range `a..b`."""

    commit: str
    branch: str | None = None
    strategy: Literal["ours", "theirs"] | None = None
    resolutions: dict[str, dict[str, Any]] | None = Field(None, description="As for a merge.")
    dry_run: bool = False
    granularity: Literal["row", "property"] | None = None


class CherryPickBody(Body):
    """What to bring: a commit, or a range `a..b`; and to which branch."""

    commit: str
    into: str | None = None
    strategy: Literal["ours", "theirs"] | None = None
    resolutions: dict[str, dict[str, Any]] | None = Field(None, description="As for a merge.")
    dry_run: bool = False
    granularity: Literal["row", "property"] | None = None


class RestoreBody(Body):
    """The state to go back to: a commit, a tag, a time, a branch."""

    to: str | int
    branch: str | None = None
    dry_run: bool = False


class TagBody(Body):
    """A tag to make."""

    name: str
    target: Snapshot = Field(None, description="A branch, a commit or another tag; `main` by default.")


class OptimizeBody(Body):
    """Which branch to compact, and which of its tables."""

    branch: str | None = None
    tables: list[str] | None = None


class IndicesBody(Body):
    """Which branch gets its declared indexes."""

    branch: str | None = None


class CleanupBody(Body):
    """How much history stays. Without `confirm` it is only told what would go."""

    keep_versions: int | None = None
    older_than: float | str | None = Field(None, description="Seconds, or a text such as `30d`.")
    confirm: bool = False
    force: bool = False


class VerifyBody(Body):
    """How to check."""

    deep: bool = Field(False, description="Also compare every file with the checksum that its commit recorded.")


class DiffBody(Body):
    """Two states to compare: branches, commits, tags."""

    from_: str = Field(alias="from")
    to: str
    kinds: list[Literal["node", "edge"]] | None = None
    types: list[str] | None = None
    ops: list[Literal["insert", "update", "delete"]] | None = None
    summary: bool = Field(False, description="Only the counts.")


class InvokeBody(Body):
    """The arguments of a stored query. It is called by name, never by its text."""

    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: Snapshot = None
