"""A text to be searched for by `nearest`, as a vector of the model that made the stored ones."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.embed.due import vector_matrix
from omnigraph.embed.imprints import imprint_of, is_certain, read_imprints
from omnigraph.embed.provider import EmbeddingProvider, NamesItsModel
from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog, Property

LOOKED_AT = 8
"""Stored vectors that are asked for their model where the schema names none."""


def text_vector(
    text: str,
    ranking: ir.Nearest,
    table_key: str,
    catalog: Catalog,
    provider: EmbeddingProvider | None,
    reader: TableReader,
    made: dict[tuple[str, int, str | None], Sequence[float]],
) -> Sequence[float]:
    """The vector of a query text, made once. Refused without a provider, or when another model made the stored ones."""
    if provider is None:
        raise BadRequest(
            f"nearest() on `{ranking.property}` got a text, and the graph has no embedding provider; "
            "configure one, or pass a vector"
        )
    graph_type = catalog.table(table_key)
    known = graph_type.by_name.get(ranking.property) if graph_type is not None else None
    model = known.embed.model if known is not None and known.embed is not None else None
    if model is None and known is not None and isinstance(provider, NamesItsModel) and is_certain(ranking.dim):
        _refuse_other_model(known, table_key, provider.model_for(None), reader)
    key = (text, ranking.dim, model)
    if key not in made:
        made[key] = provider.embed([text], dim=ranking.dim, model=model)[0]
    return made[key]


def _refuse_other_model(property_: Property, table_key: str, model: str, reader: TableReader) -> None:
    vectors = reader.some(table_key, property_.column, LOOKED_AT)
    if not len(vectors):
        return
    found = read_imprints(vector_matrix(pa.concat_arrays(vectors.chunks)))
    if (found.made_here & (found.model != imprint_of(model, vectors.type.list_size))).any():
        raise BadRequest(
            f"the vectors of `{property_.name}` were made by another model than `{model}`: they do not compare. Set "
            "the provider to that model, or make them anew with `embed`, mode `stale`"
        )
