"""The session and what surrounds a job: Java, workers, progress, Ctrl-C, Spark Connect, the choice of the engine."""

__all__ = [
    "active",
    "connect",
    "engine",
    "interrupts",
    "job_end",
    "job_metrics",
    "machine",
    "progress",
    "session",
    "worker_daemon",
    "worker_python",
]
