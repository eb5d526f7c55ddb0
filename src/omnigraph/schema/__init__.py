"""The schema language (`.pg`): grammar, syntax tree, catalog, migration planning. No I/O."""
