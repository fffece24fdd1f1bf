"""The table of TensorFlow 1.15's names, what it finds in opdock, and the page that lists it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import unittest
from pathlib import Path
from types import ModuleType

import pytest

import opdock as tf
from opdock.mapping import (
    contrib_tables,
    coverage,
    missing,
    modules,
    names,
    removed,
    resolve,
    tables,
)  # fmt: skip
from opdock.mapping.later_tables import LATER_SOURCES

ROOT = Path(__file__).resolve().parents[3]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_coverage_is_current() -> None:
    make = tool("make_coverage")
    assert make.render() == make.PAGE.read_text(encoding="utf-8"), "run `make coverage`"


def test_the_page_says_of_every_public_name_what_is_true() -> None:
    text = (ROOT / "docs/reference/coverage.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `([\w.]+)` \| (?:function|class|value|module) \|", re.MULTILINE)
    there = set(row.findall(text))
    for entry in coverage.entries():
        found = resolve.without_libraries(entry.path) is not resolve.MISSING
        assert (entry.status == "there") >= found, entry
        assert (entry.path in there) == (entry.status == "there"), entry
        if entry.status == "there":
            value: object = tf
            for part in entry.path.split("."):
                value = getattr(value, part)


def test_the_page_says_what_missing_ops_are_for() -> None:
    found = {
        op: coverage.status_of(f"raw_ops.{op}") for op in ("CudnnRNN", "DatasetToGraph", "Abs")
    }
    assert [e and (e.status, bool(e.note)) for e in found.values()] == [
        ("out", True), ("out", True), ("there", False),
    ]  # fmt: skip
    assert "out: weights in an order" in missing.why("raw_ops", "CudnnRNN")
    assert "`tf.Graph.as_graph_def` has its nodes" in missing.why("raw_ops", "DatasetToGraph")


def test_every_row_of_the_tables_leads_somewhere() -> None:
    known = names.table()
    for path, sources in tables.SOURCES.items():
        assert known.is_internal(path) or path in {*contrib_tables.GENERATED, *LATER_SOURCES}, path
        assert [s for s in sources if not resolve._exists(s)] == [], path
    for path, table in tables.NAMES.items():
        elsewhere = {*known.public, *contrib_tables.GENERATED, *LATER_SOURCES}
        assert known.is_internal(path) or path in elsewhere, path
        for name, place in table.items():
            planned = place.startswith("opdock:") and coverage.status_of(place[7:])
            assert planned or resolve.lookup(path, name) is not resolve.MISSING, (path, name)
    for path, now in removed.renamed().items():
        assert coverage.status_of(now.removeprefix("tf.")) is not None, path


@pytest.mark.parametrize(
    "path, public",
    [
        ("ops.array_ops.shape", "shape"),
        ("ops.math_ops.reduce_sum", "reduce_sum"),
        ("ops.nn_ops.conv2d", "nn.conv2d"),
        ("ops.nn.relu", "nn.relu"),
        ("ops.init_ops.zeros_initializer", "zeros_initializer"),
        ("ops.init_ops.Zeros", "zeros_initializer"),
        ("ops.variables.trainable_variables", "trainable_variables"),
        ("ops.variable_scope.get_variable", "get_variable"),
        ("ops.control_flow_ops.cond", "cond"),
        ("ops.gradients_impl.gradients", "gradients"),
        ("ops.losses.losses.absolute_difference", "losses.absolute_difference"),
        ("framework.ops.convert_to_tensor", "convert_to_tensor"),
        ("framework.ops.Graph", "Graph"),
        ("framework.ops.RegisterGradient", "RegisterGradient"),
        ("framework.dtypes.float32", "float32"),
        ("framework.errors.OutOfRangeError", "errors.OutOfRangeError"),
        ("framework.errors_impl.OutOfRangeError", "errors.OutOfRangeError"),
        ("framework.tensor_shape.TensorShape", "TensorShape"),
        ("framework.constant_op.constant", "constant"),
        ("framework.random_seed.get_seed", "get_seed"),
        ("framework.graph_util.extract_sub_graph", "graph_util.extract_sub_graph"),
        ("client.session.Session", "Session"),
        ("training.training.AdamOptimizer", "train.AdamOptimizer"),
        ("training.saver.Saver", "train.Saver"),
        ("training.saver.latest_checkpoint", "train.latest_checkpoint"),
        ("training.adam.AdamOptimizer", "train.AdamOptimizer"),
        ("platform.gfile.GFile", "gfile.GFile"),
        ("platform.gfile.Exists", "gfile.Exists"),
        ("platform.tf_logging.info", "logging.info"),
        ("platform.flags.DEFINE_string", "flags.DEFINE_string"),
        ("platform.test.TestCase", "test.TestCase"),
        ("platform.benchmark.Benchmark", "test.Benchmark"),
        ("lib.io.file_io.file_exists", "gfile.Exists"),
        ("summary.summary.scalar", "summary.scalar"),
        ("layers.layers.dense", "layers.dense"),
        ("util.compat.as_bytes", "compat.as_bytes"),
        ("util.nest.flatten", "nest.flatten"),
        ("data.ops.dataset_ops.DatasetV1", "data.Dataset"),
        ("data.ops.iterator_ops.Iterator", "data.Iterator"),
    ],
)
def test_internal_names_are_the_public_objects(path: str, public: str) -> None:
    module, _, name = path.rpartition(".")
    assert resolve.lookup(f"python.{module}", name) is resolve.public(public)


def test_the_structures_of_datasets_are_others_than_those_of_sessions() -> None:
    """As in TF: a list is one tensor to a dataset, and several to `Session.run`."""
    flatten = resolve.lookup("python.data.util.nest", "flatten")
    assert flatten([1, (2, 3)]) == [[1, (2, 3)]]
    assert resolve.lookup("python.util.nest", "flatten")([1, (2, 3)]) == [1, 2, 3]


def test_helpers_of_the_internal_tree() -> None:
    inspect_ = tf.python.util.tf_inspect
    assert inspect_.getargspec(lambda a, b=1: 0).defaults == (1,)
    assert tf.python.util.function_utils.fn_args(test_the_page_of_coverage_is_current) == ()
    assert tf.python.framework.tensor_shape.scalar().as_list() == []
    assert tf.python.framework.dtypes.float32_ref is tf.float32._as_ref
    assert not tf.python.eager.context.executing_eagerly() and not tf.python.tf2.enabled()
    smart_cond = tf.python.framework.smart_cond.smart_cond
    assert smart_cond(tf.constant(True), lambda: 1, lambda: 2) == 1
    with tf.Session() as sess:
        ran = tf.Variable(0)
        sess.run(ran.initializer)
        add = tf.assign_add(ran, 1)
        after = tf.python.ops.control_flow_ops.with_dependencies([add], tf.constant(3))
        assert sess.run(after) == 3 and sess.run(ran) == 1


def test_the_projectors_configuration(tmp_path: Path) -> None:
    projector = resolve.lookup("contrib.tensorboard.plugins", "projector")
    assert projector == resolve.ModulePath("contrib.tensorboard.plugins.projector")
    config = resolve.lookup(projector.path, "ProjectorConfig")()
    config.embeddings.add().tensor_name = "emb"
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        resolve.lookup(projector.path, "visualize_embeddings")(writer, config)
    assert 'tensor_name: "emb"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_decorators_for_tests_and_old_functions() -> None:
    test_util = tf.python.framework.test_util
    assert issubclass(test_util.TensorFlowTestCase, tf.test.TestCase)

    class Case(test_util.TensorFlowTestCase):
        @test_util.run_in_graph_and_eager_modes(assert_no_eager_garbage=True)
        @test_util.run_deprecated_v1
        def test_one(self):
            with test_util.force_cpu():
                self.assertAllEqual(self.evaluate(tf.constant([1, 2])), [1, 2])

        @test_util.run_v2_only
        def test_two(self):
            raise AssertionError

        @test_util.skip_if(lambda: True)
        def test_three(self):
            raise AssertionError

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert (result.testsRun, len(result.skipped)) == (4, 3)  # `test_session` is one


def test_classes_of_tests_that_run_in_a_session_each() -> None:
    test_util = tf.python.framework.test_util
    eagerly: list[bool] = []

    @test_util.run_all_in_graph_and_eager_modes
    class Case(test_util.TensorFlowTestCase):
        test_data = 3

        def test_in_it(self):
            eagerly.append(tf.executing_eagerly())
            self.assertEqual(tf.get_default_session() is None, tf.executing_eagerly())
            self.assertEqual(self.evaluate(tf.constant(1)), 1)

        def testSkipEagerAlone(self):
            self.assertIsNone(tf.get_default_session())
            with self.cached_session(config=tf.ConfigProto()) as sess:
                self.assertEqual(self.evaluate(tf.constant(1)), sess.run(tf.constant(1)))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert result.testsRun == 3 and Case.test_data == 3
    assert eagerly == [False, True]


def test_what_deprecation_decorators_say(caplog: pytest.LogCaptureFixture) -> None:
    deprecation = tf.python.util.deprecation

    @deprecation.deprecated("2018-01-01", "Use g.")
    @deprecation.deprecated_args(None, "Use c.", "b")
    def f(a: int, b: int = 0) -> int:
        return a + b

    with caplog.at_level("WARNING", "tensorflow"):
        assert f(1, b=2) == 3 and f(2, b=2) == 4
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == 2 and "after 2018-01-01" in said[0] and "Use g." in said[0]
    assert "with b is deprecated" in said[1]
    with pytest.raises(ValueError, match="both 'old' and 'new'"):
        deprecation.deprecated_argument_lookup("new", 1, "old", 2)


def test_functions_that_may_change_say_so(caplog: pytest.LogCaptureFixture) -> None:
    experimental = resolve.lookup("contrib.framework", "experimental")
    assert resolve.lookup("contrib.framework.python.framework", "experimental") is experimental

    @experimental
    def f(a: int) -> int:
        """Adds one."""
        return a + 1

    with caplog.at_level("WARNING", "tensorflow"):
        assert f(1) == 2
    assert "is experimental and may change" in caplog.records[-1].getMessage()
    assert (f.__doc__ or "").startswith("Adds one. (experimental)\n\nWarning: THIS FUNCTION IS")
    with pytest.raises(ValueError, match="is not a function"):
        experimental(property(lambda self: 1))


def test_functions_of_eager_programs_are_those_of_graphs() -> None:
    plain = resolve.lookup("python.eager.function", "defun")
    assert inspect.signature(plain) == inspect.signature(tf.function).replace(
        parameters=list(inspect.signature(tf.function).parameters.values())[:-1]
    )
    make = resolve.lookup("python.eager.function", "defun_with_attributes")

    @make(attributes={"api_implements": "f"})
    def f(x: tf.Tensor) -> tf.Tensor:
        return x + 1

    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(f(tf.constant(1))) == 2


def test_datasets_of_tensorflow_2_are_the_bases_of_those_of_1() -> None:
    # What asks whether something is one of these is to find those of both kinds.
    assert issubclass(tf.data.Dataset, tf.compat.v2.data.Dataset)
    made = tf.compat.v2.data.Dataset.range(3).map(lambda x: x + 1)
    assert not isinstance(made, tf.data.Dataset)
    for name in ("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"):
        assert not issubclass(getattr(tf.compat.v2.data, name), tf.data.Dataset)
        assert issubclass(getattr(tf.data, name), tf.data.Dataset)
    element = tf.compat.v1.data.make_one_shot_iterator(made).get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(3)] == [1, 2, 3]


def test_a_name_serves_under_all_its_public_paths() -> None:
    assert tf.math.acos is tf.acos and tf.io.read_file is tf.read_file
    assert tf.random.normal is tf.random_normal and tf.compat.v1.nn.relu is tf.nn.relu
    assert tf.compat.v2.nn.relu is tf.nn.relu
    with pytest.raises(AttributeError, match="TF 2's it has the names that 1.x shares"):
        _ = tf.compat.v2.Session


def test_names_from_before_1_0(caplog: pytest.LogCaptureFixture) -> None:
    removed._told.clear()
    with caplog.at_level("WARNING", "tensorflow"), tf.Session() as sess:
        assert sess.run(tf.mul(tf.sub(5, 2), tf.neg(2))) == -6
        assert sess.run(tf.mul(2, 2)) == 4
        x = tf.constant([[1.0, 2.0]])
        assert sess.run(tf.batch_matmul(x, x, adj_y=True)).tolist() == [[5.0]]
        assert sess.run(tf.select([True, False], [1, 2], [3, 4])).tolist() == [1, 4]
        with tf.Graph().as_default() as graph, tf.Session() as inner:
            tf.scalar_summary("loss", 1.5)
            tf.histogram_summary("h", [1.0, 2.0])
            summary = tf.Summary.FromString(inner.run(tf.merge_all_summaries()))
            assert [v.tag for v in summary.value] == ["loss", "h"]
            assert graph.get_collection(tf.GraphKeys.SUMMARIES)
    assert tf.train.SummaryWriter is tf.summary.FileWriter
    said = [r.getMessage() for r in caplog.records if "deprecated" in r.getMessage()]
    assert sum("tf.mul is" in m and "tf.multiply" in m for m in said) == 1
    with pytest.raises(AttributeError, match=r"tf\.contrib\.legacy_seq2seq"):
        _ = tf.nn.seq2seq
    with pytest.raises(AttributeError, match=r"tf\.nn\.static_bidirectional_rnn"):
        modules.lookup("tensorflow.nn", "nn", "bidirectional_rnn")


def test_census_groups_and_shares(tmp_path: Path) -> None:
    census = tool("census")
    file = tmp_path / "c.csv"
    file.write_text("name,repos,occurrences\ntf.add,1,3\ntf.nn.relu,1,2\ntf.nn.nope,1,5\n*.x,1,9\n")
    groups = census.read(file)
    assert (groups["tf"].uses, groups["tf"].covered) == (3, 3)
    assert (groups["nn"].uses, groups["nn"].covered, groups["nn"].missing) == (
        7,
        2,
        {"nn.nope": 5},
    )
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no columns"):
        census.read(file)


def test_census_of_a_folder_leaves_out_what_its_programs_set(tmp_path: Path) -> None:
    census = tool("census")
    (tmp_path / "a.py").write_text(
        "import tensorflow as tf\ntf.GraphKeys.MINE = 'mine'\nprint(tf.nope, tf.__dict__)\n"
    )
    (tmp_path / "b.py").write_text(
        "import tensorflow as tf\ntf.compat.v1.get_collection(tf.compat.v1.GraphKeys.MINE)\n"
    )
    found = census.read_folder(tmp_path)
    assert (found.uses, found.covered, found.missing) == (3, 2, {"nope": 1})


def test_census_counts_no_module_that_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    census = tool("census")
    (tmp_path / "one").mkdir()
    (tmp_path / "one/a.py").write_text(
        "import tensorflow as tf\ntf.contrib.nope()\ntf.compat.v1.keras.nope()\ntf.add(1, 2)\n"
        "from tensorflow.python.keras import nope\ntf.nn.nope()\ntf.nn.nope()\n"
    )
    found = census.read_folder(tmp_path / "one", ["contrib", "keras"])
    assert (found.uses, found.covered, found.missing) == (3, 1, {"nn.nope": 2})
    found = census.read_folder(tmp_path / "one", ["contrib.*", "*keras.*", "nn.NOPE", "n.*"])
    assert (found.uses, found.covered, found.missing) == (3, 1, {"nn.nope": 2})
    for words, status in ((["--without", "nn", "contrib", "keras"], 0), (["--least", "101"], 1)):
        command = ["census.py", str(tmp_path / "one"), "--least", "99.5", *words]
        monkeypatch.setattr(sys, "argv", command)
        assert census.main() == status
    assert " 100.00%        1 of       1       0  one\n" in capsys.readouterr().out


def test_what_tensorflow_has_is_known_by_its_lists() -> None:
    has = names.table().has
    for path in (
        "nn.relu", "Variable.name", "compat.v1.nn.relu", "compat.v2.summary.trace_on", "train",
        "python.ops.array_ops.anything", "python.debug.LocalCLIDebugHook",
    ):  # fmt: skip
        assert has(path), path
    for path in (
        "nn.nope", "optimizers.Adam", "compat.v2.math.ndtri", "python.trackable.base.Trackable",
        "compat.v1.config.list_physical_devices",
    ):  # fmt: skip
        assert not has(path), path


def test_census_counts_names_of_other_versions_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import tensorflow as tf\ntf.optimizers.Adam()\ntf.tpu.experimental.nope\ntf.add(1, 2)\n"
        "tf.config.experimental_connect_to_host()\n"
    )
    found = tool("census").read_folder(tmp_path, ["tpu"])
    assert (found.uses, found.covered, found.others, found.share) == (3, 1, 1, 0.5)


def test_every_op_of_raw_ops_is_an_op() -> None:
    assert tf.raw_ops.Any.__name__ == "Any"
    for name in dir(tf.raw_ops):
        assert callable(getattr(tf.raw_ops, name)), name


def test_the_tables_of_lookup_ops_are_found() -> None:
    from opdock.python.ops import lookup_ops

    for name in ("index_table_from_tensor", "HashTable", "IdTableWithHashBuckets", "HasherSpec"):
        assert getattr(lookup_ops, name).__module__.startswith("opdock.lookup"), name


def test_whole_files_of_file_io(tmp_path: Path) -> None:
    from opdock.python.lib.io import file_io

    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    file_io.atomic_write_string_to_file(one, "hello")
    file_io.write_string_to_file(two, "hellx")
    assert file_io.file_crc32(one) == file_io.file_crc32(one, block_size=2) == "0x3610a686"
    assert not file_io.filecmp(one, two)
    file_io.atomic_write_string_to_file(two, "hello")
    assert file_io.filecmp(one, two)
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(two, "other", overwrite=False)
    assert file_io.read_file_to_string(two) == "hello"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "two"]


def test_a_public_function_is_not_hidden_by_the_ops_own() -> None:
    nn = importlib.import_module("opdock.python.ops.nn")
    assert nn.fused_batch_norm is tf.nn.fused_batch_norm
