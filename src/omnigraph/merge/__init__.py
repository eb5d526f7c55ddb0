"""Three-way merge, diff, change feed."""
