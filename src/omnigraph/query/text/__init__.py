"""The written language: tokens, grammar, syntax tree, syntax errors, and the tree as text again.

A text becomes a tree here and nothing else: what makes sense is said by `check`, what it means by `lower`.
"""

__all__ = ["format", "parse", "print", "syntax", "tokens"]
