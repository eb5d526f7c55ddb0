"""Bounds of the schema language: beyond any real schema, small enough that no input can hold a process up."""

from __future__ import annotations

MAX_SOURCE_LENGTH = 400_000
"""Characters in one `.pg` text."""

MAX_TYPE_NESTING = 16
"""Brackets around a type. More than one pair is an error anyway; this bounds the tree that is kept to say so."""

MAX_NUMBER_LENGTH = 400
"""Characters of a number: every value of every type is shorter."""

MAX_NAME_LENGTH = 255
"""Characters of the name of a type or a property."""

MAX_PROPERTIES = 4_096
"""Properties of one type, those of its interfaces included."""

MAX_EXPANDED_PROPERTIES = 100_000
"""Properties of all types of a schema together: interfaces can multiply them."""

MAX_DIAGNOSTICS = 100
"""Errors that are shown of one text; the last then says that there are more."""

MAX_FINDINGS = 1_000
"""Findings that are kept of one text."""

RECOVERY_BUDGET = 400_000
"""Characters that may be parsed again to find more errors in one declaration."""

MAX_RETRIES = 50
"""How often one declaration is tried again without a line that was wrong."""

MAX_VECTOR_DIMENSION = 65_536
"""Components of a vector."""

MAX_PATTERN_LENGTH = 1_000
"""Characters of a `@check` pattern."""

MAX_PATTERN_NESTING = 50
"""Groups within groups in a `@check` pattern."""

MAX_PATTERN_REPEAT = 1_000
"""The largest count of a repetition, also multiplied through nested repetitions, as in RE2."""
