"""Three versions of a table and a caller's answers to what becomes of each row, or to conflicts."""

__all__ = [
    "bases",
    "conflicts",
    "fields",
    "given_rows",
    "graph_conflicts",
    "mixed_rows",
    "planned",
    "put_back",
    "schema_merge",
    "three_way",
]
