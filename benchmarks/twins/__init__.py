"""The workloads as users of other libraries would write them, on the same inputs."""
