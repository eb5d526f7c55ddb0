"""`__manifest`: what each branch publishes, read and written. One publish makes many table versions one state."""

__all__ = ["manifest", "manifest_rows", "pins", "publish", "stamp"]
