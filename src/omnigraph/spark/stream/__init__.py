"""Streams: micro-batches of Spark into a graph, and a graph's change feed out to Spark."""

__all__ = ["feed_reader", "load_stream", "sink"]
