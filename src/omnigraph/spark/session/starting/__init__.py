"""What it takes to start a session: Java, and what is said and undone where the start fails or is interrupted."""

__all__ = ["java", "not_started", "unfinished_start"]
