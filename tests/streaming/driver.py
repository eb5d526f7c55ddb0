"""The driver of a stream, as a process of its own: loads a directory of JSON lines, a file per batch, and ends."""

from __future__ import annotations

import sys

import omnigraph as og
from omnigraph.spark.session.session import spark_session


def main(uri: str, source: str, checkpoint: str) -> None:
    spark = spark_session("local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
    incoming = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    with og.open(uri) as graph:
        graph.load_stream(incoming, checkpoint=checkpoint, trigger={"availableNow": True}).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
