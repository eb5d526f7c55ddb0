"""Two states of a schema and their common ancestor become one schema, by stable ids. No I/O."""

__all__ = ["facts", "merge_schemas", "render"]
