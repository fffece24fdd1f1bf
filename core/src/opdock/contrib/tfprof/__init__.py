"""`tf.contrib.tfprof`: the profiler of `tf.profiler`, by the names that it had first."""

from opdock.contrib.tfprof import model_analyzer, tfprof_logger

__all__ = ["model_analyzer", "tfprof_logger"]
