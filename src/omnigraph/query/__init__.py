"""The query language (`.gq`): grammar, syntax tree, types, IR, lint. No I/O."""
