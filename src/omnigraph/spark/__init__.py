"""Spark session, data source and jobs: the only package that imports pyspark."""
