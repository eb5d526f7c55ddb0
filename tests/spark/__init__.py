"""The Spark package, through a real session."""
