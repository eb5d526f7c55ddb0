"""The sample on Spark shares the session of the Spark tests."""

from tests.spark.conftest import spark

__all__ = ["spark"]
