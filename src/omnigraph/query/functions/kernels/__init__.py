"""What the functions mean, on Arrow arrays: `kernel(args, result)`. The table says which function has which kernel.

Arguments are arrays of one length, or scalars that stand for the same value in every row; at least one is an array.
Null among the arguments of a strict function makes the result null: Arrow's own kernels do so, the others say it.
"""

__all__ = ["arguments", "lists", "moments"]
