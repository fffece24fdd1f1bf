"""`import tensorflow` means opdock: what libraries import, each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = "import opdock\ntf = opdock.install_as_tensorflow()\n"


def run(source: str, *, start: str = START, cwd: Path | None = None) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + source],
        capture_output=True, text=True, check=False, cwd=cwd,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_way_to_import_gives_the_same_modules_and_objects() -> None:
    run("""
import importlib, importlib.util
import tensorflow
import tensorflow as again
import tensorflow.python.ops.array_ops as one
from tensorflow.python.ops import array_ops
from tensorflow.python.ops.array_ops import shape
import tensorflow.compat.v1 as tf1
from tensorflow.compat import v1
from tensorflow.nn import relu
import tensorflow.train
assert tensorflow is again is tf
assert one is array_ops is importlib.import_module("tensorflow.python.ops.array_ops")
assert one is tf.python.ops.array_ops
assert shape is tf.shape is tf1.shape is opdock.shape
assert tf1 is v1 and tf1.nn.relu is relu is tf.nn.relu
assert tensorflow.train.AdamOptimizer is opdock.train.AdamOptimizer
assert importlib.util.find_spec("tensorflow").name == "tensorflow"
assert importlib.util.find_spec("tensorflow.python.framework.ops") is not None
assert importlib.util.find_spec("tensorflow.nothing") is None
assert opdock.install_as_tensorflow() is tf
""")


def test_the_logger_has_its_handler_once_tensorflow_is_imported() -> None:
    asked = (
        "print(len(logging.getLogger('tensorflow').handlers), tf.logging.get_verbosity())\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "print(tf.logging.get_verbosity())\n"
    )
    assert run(asked, start="import logging\n" + START) == "1 30\n20\n"


def test_the_logger_has_no_handler_where_the_program_configured_logging_before(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import logging\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "import tensorflow as tf\n"
        "print(len(logging.getLogger('tensorflow').handlers), tf.logging.get_verbosity())\n"
    )
    command = [sys.executable, "-m", "opdock.cli.main", "run", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 20\n"), done.stderr


def test_versions_that_libraries_ask_for() -> None:
    assert (
        run("""
import importlib.metadata as metadata
print(tf.__version__, tf.VERSION, tf.version.VERSION, metadata.version("tensorflow"))
""")
        == "1.15.0 1.15.0 1.15.0 1.15.0\n"
    )


def test_pkg_resources_finds_the_distribution_before_and_after() -> None:
    pytest.importorskip("pkg_resources")
    source = "import pkg_resources as p; print(p.get_distribution('tensorflow').version)"
    ignored = "import warnings; warnings.simplefilter('ignore')\n"
    assert run(ignored + source) == "1.15.0\n"
    assert run(ignored + START + source, start="import pkg_resources\n") == "1.15.0\n"


def test_protobuf_modules_have_the_classes_that_opdock_uses() -> None:
    run("""
from tensorflow.core.framework import graph_pb2, types_pb2
from tensorflow.core.framework.summary_pb2 import Summary
from tensorflow.core.protobuf.config_pb2 import ConfigProto
from tensorflow.core.protobuf import meta_graph_pb2, saver_pb2
from tensorflow.core.example.example_pb2 import Example
from tensorflow.core.example import feature_pb2
from tensorflow.core.util.event_pb2 import Event
assert graph_pb2.GraphDef is tf.GraphDef and ConfigProto is tf.ConfigProto
assert type(tf.get_default_graph().as_graph_def()) is graph_pb2.GraphDef
assert Summary is tf.Summary and Event is tf.Event and saver_pb2.SaverDef is tf.train.SaverDef
assert Example is tf.train.Example and feature_pb2.Feature is tf.train.Feature
assert types_pb2.DT_FLOAT == tf.float32.as_datatype_enum
assert meta_graph_pb2.MetaGraphDef is tf.MetaGraphDef
""")


def test_a_missing_name_says_what_to_do() -> None:
    out = run("""
for statement in (
    "tf.reduce_median", "tf.nn.reduce_sum", "tf.compat.v2.Session", "tf.op_scope_",
    "from tensorflow.python.framework.ops import nope", "from tensorflow import nope",
    "import tensorflow.nope",
):
    try:
        exec(statement)
    except (AttributeError, ImportError) as e:
        print(f"{type(e).__name__}: {e}")
""").splitlines()
    assert out[0].startswith("AttributeError: module 'tensorflow' has no attribute 'reduce_median'")
    assert "it has tf.math.reduce_sum and tf.reduce_sum" in out[1]
    assert "TF 2's" in out[2]
    assert out[4].startswith("ImportError: cannot import name 'nope' from 'tensorflow.python.")
    assert "coverage.md" in out[4] and out[5].startswith("ImportError: cannot import name 'nope'")
    assert out[6] == "ModuleNotFoundError: No module named 'tensorflow.nope'"


def test_generated_functions_take_arguments_by_position_in_tensorflows_order() -> None:
    run("""
from tensorflow.python.ops import gen_array_ops, gen_math_ops, gen_nn_ops
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
with tf.Session() as sess:
    total = gen_math_ops._sum(x, [1], True, "total")
    assert total.op.name == "total" and sess.run(total).tolist() == [[3.0], [7.0]]
    assert sess.run(gen_math_ops.mat_mul(x, x, True)).tolist() == [[10.0, 14.0], [14.0, 20.0]]
    assert sess.run(gen_array_ops.concat_v2([x, x], 1)).shape == (2, 4)
    assert sess.run(gen_nn_ops.relu(-x)).sum() == 0
    p = gen_array_ops.placeholder(tf.float32, shape=[2], name="p")
    assert p.op.name == "p"
try:
    gen_math_ops.mat_mul(x)
except TypeError as e:
    assert "missing required arguments: b" in str(e), e
else:
    raise AssertionError
""")


def test_a_star_import_brings_the_public_names() -> None:
    run("""
names = {}
exec("from tensorflow import *", names)
assert names["reduce_sum"] is tf.reduce_sum and names["float32"] is tf.float32
exec("from tensorflow.python.framework.dtypes import *", names)
assert names["as_dtype"] is tf.as_dtype
""")


def test_a_modules_dictionary_has_every_name() -> None:
    """Programs take names from it by their settings, or look for all classes of a kind."""
    run(
        """
import inspect
import tensorflow as tf
assert vars(tf.nn)["relu"] is tf.nn.relu and "relu" in tf.nn.__dict__
assert tf.nn.__dict__.get("no_such_name") is None and "no_such_name" not in tf.__dict__
found = {c for c in tf.contrib.rnn.__dict__.values()
         if inspect.isclass(c) and issubclass(c, tf.contrib.rnn.RNNCell)}
assert {tf.contrib.rnn.GRUCell, tf.contrib.rnn.NASCell, tf.contrib.rnn.LSTMCell} <= found
assert dict(vars(tf.losses))["log_loss"] is tf.losses.log_loss
assert len(vars(tf.losses)) == len(list(tf.losses.__dict__)) == len(dir(tf.losses))
assert isinstance(vars(tf.losses), dict)
assert inspect.getattr_static(tf.losses, "no_such_name", 3) == 3
vars(tf.losses)["mine"] = 4
assert tf.losses.mine == 4
del vars(tf.losses)["mine"]
assert not hasattr(tf.losses, "mine")
try:
    del vars(tf.losses)["log_loss"], vars(tf.losses)["mine"]
except KeyError as error:
    assert error.args == ("mine",)
else:
    raise AssertionError
"""
    )


def test_a_real_tensorflow_in_the_process_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("VERSION = '9'\n")
    run(
        f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import tensorflow, opdock
try:
    opdock.install_as_tensorflow()
except ImportError as e:
    assert "already imported" in str(e) and "tensorflow.py" in str(e)
else:
    raise AssertionError
assert tensorflow.VERSION == '9' and tensorflow is sys.modules["tensorflow"]
""",
        start="",
    )


def test_one_that_is_installed_but_not_imported_is_not_mixed_in(tmp_path: Path) -> None:
    package = tmp_path / "tensorflow" / "python"
    package.mkdir(parents=True)
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise SystemExit('the real one')\n")
    (package / "__init__.py").write_text("raise SystemExit('the real one')\n")
    run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport tensorflow.python.ops.nn\n")


def test_importing_opdock_installs_nothing() -> None:
    run(
        "import sys, opdock, importlib.util\n"
        "assert not any('opdock.mapping' in m or 'opdock.legacy' in m for m in sys.modules)\n"
        "assert importlib.util.find_spec('tensorflow') is None\n",
        start="",
    )


def test_tests_of_eager_programs_run_eagerly(tmp_path: Path) -> None:
    program = tmp_path / "a_test.py"
    program.write_text("""
from tensorflow.python.eager import context, test
import tensorflow as tf

class ATest(test.TestCase):
    def test_it(self):
        with context.device("/cpu:0"):
            self.assertEqual((tf.constant(1) + 1).numpy(), 2)

if __name__ == "__main__":
    test.main()
""")
    done = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "run", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "OK" in done.stderr, done.stderr
