"""`tf.contrib.tfprof`: the profiler of `tf.profiler`, by the names that it had first."""

from opdock.contrib.tfprof import model_analyzer, tfprof_logger
from opdock.profiler.profile_context import ProfileContext

__all__ = ["ProfileContext", "model_analyzer", "tfprof_logger"]
