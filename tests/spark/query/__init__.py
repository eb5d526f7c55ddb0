"""The Spark query engine: what can be seen without a session. What it answers is in tests/parity."""
