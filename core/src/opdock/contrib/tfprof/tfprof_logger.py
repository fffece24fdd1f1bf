"""`tf.contrib.tfprof.tfprof_logger`: what `tf.profiler.write_op_log` does."""

from opdock.profiler.op_log import write_op_log
from opdock.profiler.options import REGISTERED_FLOP_STATS, TRAINABLE_VARIABLES

__all__ = ["REGISTERED_FLOP_STATS", "TRAINABLE_VARIABLES", "write_op_log"]
