"""A catalog as text: compiled again, it is the same catalog."""

from __future__ import annotations

from hypothesis import given, settings

from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.merging.facts import catalog_of, facts_of
from omnigraph.schema.merging.render import render_schema
from tests.strategies.schemas import catalogs


@settings(max_examples=80, deadline=None)
@given(catalogs())
def test_the_text_of_a_catalog_compiles_to_it(catalog: Catalog) -> None:
    assert compile_schema(render_schema(catalog), previous=catalog) == catalog


@settings(max_examples=60, deadline=None)
@given(catalogs())
def test_the_facts_of_a_catalog_are_all_of_it(catalog: Catalog) -> None:
    assert catalog_of(facts_of(catalog), catalog.next_id) == catalog
