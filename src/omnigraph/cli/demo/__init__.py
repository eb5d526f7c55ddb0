"""The schema and the queries of the sample graph."""
