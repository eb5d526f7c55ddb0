"""From an accepted catalog to a desired one: the steps, and which of them cannot be taken."""

__all__ = ["migrate", "migration_steps"]
