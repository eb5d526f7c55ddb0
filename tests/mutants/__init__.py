"""A test of the tests: the product is changed in one small place at a time, and some test must notice.

`python -m tests.mutants --count 200` makes the changes at random places of `read/`, `merge/` and `ledger/`, in a copy
of the source, runs the tests that lie beside the changed module, then wider ones, and reports what nobody noticed.
"""
