"""The profiler by the names of TensorFlow's own modules and of `tf.contrib.tfprof`.

In a process of its own: importing them here would make `tensorflow` mean opdock for all tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import tensorflow as tf
from tensorflow.core.profiler import profile_pb2, tfprof_log_pb2
from tensorflow.core.profiler import tfprof_options_pb2, tfprof_output_pb2
from tensorflow.python.framework import ops
from tensorflow.python.profiler import model_analyzer, option_builder, profiler, tfprof_logger
from tensorflow.python.profiler.profile_context import ProfileContext
from tensorflow.python.profiler.internal import flops_registry

assert profiler.Profiler is model_analyzer.Profiler is tf.profiler.Profiler
assert option_builder.ProfileOptionBuilder is tf.compat.v1.profiler.ProfileOptionBuilder
assert tfprof_logger.write_op_log is tf.profiler.write_op_log
assert tfprof_logger.TRAINABLE_VARIABLES == "_trainable_variables"
assert tfprof_log_pb2.OpLogProto is tf.profiler.OpLogProto
assert tfprof_output_pb2.AdviceProto is tf.profiler.AdviceProto
assert profile_pb2.Profile(string_table=["a"]).string_table == ["a"]
assert tfprof_options_pb2.OptionsProto(step=3).step == 3

assert ProfileContext is tf.contrib.tfprof.ProfileContext
analyzer = tf.contrib.tfprof.model_analyzer
product = tf.matmul(tf.get_variable("w", [3, 4]), tf.ones([4, 5]))
stats = ops.get_stats_for_node_def(tf.get_default_graph(), product.op.node_def, "flops")
assert stats.value == 120
options = dict(analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, output="none")
found = analyzer.print_model_analysis(tf.get_default_graph(), tfprof_options=options)
assert found.total_parameters == 12
options = dict(analyzer.FLOAT_OPS_OPTIONS, dump_to_file="profile")
analyzer.print_model_analysis(
    tf.get_default_graph(), tfprof_cmd="op", tfprof_options=options)
assert "120 float_ops" in open("profile").read()
tf.contrib.tfprof.tfprof_logger.write_op_log(tf.get_default_graph(), ".")
print("all there")
"""


def test_the_names_of_modules(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import opdock; opdock.install_as_tensorflow()\n" + PROGRAM],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("all there\n"), done.stderr
