"""What is wanted: `cluster.yaml` and the files that it names, read with their places, every problem told at once.

`read_folder` reads and checks all of it; `cluster_file` is the YAML file alone; `cluster_problems` what is wrong.
"""

__all__ = ["cluster_file", "cluster_problems", "read_folder"]
