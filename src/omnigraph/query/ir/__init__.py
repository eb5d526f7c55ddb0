"""The typed IR: what a query means, as immutable values. Both engines run this and nothing else.

Expressions say what a value is (`expressions`, `search`); operators say which rows there are (`operators`), one for
each idea; `queries` puts them together. The lowered tree is *logical*: its order follows the text, and a planner may
reorder a block, since that is a conjunction. The package is its own entrance: `from omnigraph.query import ir`.
"""

__all__ = ["walk"]
