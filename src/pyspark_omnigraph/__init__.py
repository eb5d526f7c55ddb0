"""Lets Spark find the data source `omnigraph` by itself: it takes `DefaultSource` of every module named `pyspark_…`."""

from omnigraph.spark.source.datasource import OmniGraphDataSource as DefaultSource

__all__ = ["DefaultSource"]
