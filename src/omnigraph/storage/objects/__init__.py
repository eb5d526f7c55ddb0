"""Small objects (schemas, refs, sidecars, leases) on any store, with the same promises everywhere."""

__all__ = ["local_files", "object_errors", "objects", "os_locks", "path_segments"]
