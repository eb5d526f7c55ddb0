"""Planning, execution, topology, search, results."""
