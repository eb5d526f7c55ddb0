"""Schema apply: the steps of a migration and the data they touch, published in one step."""

__all__ = ["schema_apply", "schema_facts", "schema_tables"]
