"""Text to vectors: the interface that providers implement, and a deterministic one that needs no network."""
