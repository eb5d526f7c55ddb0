"""What a process that does nothing but serve is set up with: its collector, its heaps, its share of the connections."""

__all__ = ["collector_pace", "even_shares", "few_heaps"]
