"""The parity suite shares the Spark session of the Spark tests."""

from tests.spark.conftest import spark

__all__ = ["spark"]
