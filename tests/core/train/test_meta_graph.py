"""MetaGraphDefs: collections, scopes, devices, text and binary."""

from __future__ import annotations

from pathlib import Path

import pytest

import opdock as tf
from opdock.io import protos
from opdock.ops.composed import defined_function as function
from opdock.train.meta_graph import (
    export_scoped_meta_graph,
    import_scoped_meta_graph,
    import_scoped_meta_graph_with_return_elements,
)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def model() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/gpu:3"):
        tf.multiply(x, v, name="y")
    tf.add_to_collection("inputs", x)
    tf.add_to_collection("number", 7)
    tf.add_to_collection("ratio", 0.5)
    tf.add_to_collection("text", "words")


@pytest.mark.parametrize("as_text", [False, True])
def test_export_and_import(tmp_path: Path, as_text: bool) -> None:
    model()
    saver = tf.train.Saver()
    # A session places the whole graph, `y` too.
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.global_variables()[0].assign([3.0, 4.0]))
        saver.save(sess, str(tmp_path / "m"), write_meta_graph=False)
    path = str(tmp_path / "g.meta")
    meta = saver.export_meta_graph(path, as_text=as_text)
    assert meta.saver_def == saver.as_saver_def()
    with tf.Graph().as_default() as graph:
        again = tf.train.import_meta_graph(path, clear_devices=True)
        assert graph.get_collection("inputs") == [graph.get_tensor_by_name("x:0")]
        assert graph.get_collection("number") == [7]
        assert graph.get_collection("ratio") == [0.5]
        assert graph.get_collection("text") == [b"words"]
        (v,) = tf.global_variables()
        assert tf.trainable_variables() == [v]
        with tf.Session() as sess:
            again.restore(sess, str(tmp_path / "m"))
            assert sess.run("y:0", {"x:0": [1.0, 1.0]}).tolist() == [3, 4]
            sess.run(v.initializer)
            assert sess.run(v).tolist() == [1, 2]
        assert graph.get_operation_by_name("y").device == ""


def test_import_into_a_scope(tmp_path: Path) -> None:
    model()
    meta = tf.train.Saver().export_meta_graph()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta, import_scope="a", clear_devices=True)
        saver = tf.train.import_meta_graph(meta, import_scope="a", clear_devices=True)
        assert [v.name for v in tf.global_variables()] == ["a/v:0", "a_1/v:0"]
        assert saver.as_saver_def().restore_op_name == "a_1/save/restore_all"
        assert graph.get_collection("inputs")[1].name == "a_1/x:0"
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            saver.save(sess, str(tmp_path / "m"))


@pytest.mark.parametrize(("version", "told"), [("1.4.0-rc1", False), ("1.15.0", True), ("", True)])
def test_variables_of_old_versions_are_trainable_by_their_collection(version, told) -> None:
    tf.Variable(1.0, name="yes")
    tf.Variable(1.0, name="no", trainable=False)
    meta = tf.train.export_meta_graph()
    meta.meta_info_def.tensorflow_version = version
    for collection in meta.collection_def.values():
        for i, message in enumerate(collection.bytes_list.value):
            variable = protos.VariableDef.FromString(message)
            variable.ClearField("trainable")
            collection.bytes_list.value[i] = variable.SerializeToString()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        assert [v.trainable for v in tf.global_variables()] == [not told, False]


def test_export_of_a_scope() -> None:
    outside = tf.placeholder(tf.float32, [2], name="outside")
    with tf.variable_scope("part"):
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        tf.multiply(v, outside, name="y")
    meta, variables = export_scoped_meta_graph(export_scope="part")
    assert set(variables) == {"v:0"}
    assert {"v", "v/read", "y"} <= {n.name for n in meta.graph_def.node}
    assert all(not n.name.startswith("part/") for n in meta.graph_def.node)
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="unbound inputs"):
            import_scoped_meta_graph(meta)
        found, elements = import_scoped_meta_graph_with_return_elements(
            meta, input_map={"outside": tf.constant([5.0, 6.0])}, return_elements=["y:0"]
        )
        with tf.Session() as sess:
            sess.run(found["v:0"].initializer)
            assert sess.run(elements[0]).tolist() == [5, 12]


def test_default_attributes_can_be_left_out() -> None:
    model()
    meta = tf.train.export_meta_graph(strip_default_attrs=True)
    assert meta.meta_info_def.stripped_default_attrs
    variable = next(n for n in meta.graph_def.node if n.op == "VariableV2")
    assert set(variable.attr) >= {"dtype", "shape"}
    assert "container" not in variable.attr
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
    # Who imports finds them in what was imported, as in TensorFlow.
    assert variable.attr["container"].s == b"" and "container" in variable.attr


def test_default_attributes_of_functions_can_be_left_out() -> None:
    @function.Defun(tf.float32, tf.float32)
    def inner(i: tf.Tensor, j: tf.Tensor) -> tf.Tensor:
        return tf.complex(i, j, name="both")

    @function.Defun(tf.float32, tf.float32)
    def outer(i: tf.Tensor, j: tf.Tensor) -> tf.Tensor:
        return inner(i, j)

    name = outer(tf.constant(1.0), tf.constant(2.0)).name
    meta = tf.train.export_meta_graph(strip_default_attrs=True)
    inside = [n for f in meta.graph_def.library.function for n in f.node_def]
    (both,) = (n for n in inside if n.op == "Complex")
    assert not {"T", "Tout"} & both.attr.keys()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        with tf.Session() as sess:
            assert sess.run(graph.get_tensor_by_name(name)) == 1 + 2j


def test_graphs_without_variables() -> None:
    tf.constant(1.0)
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(meta) is None


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="does not exist"):
        tf.train.import_meta_graph(str(tmp_path / "none.meta"))
    (tmp_path / "bad.meta").write_bytes(b"\xff\xfe not a graph")
    with pytest.raises(OSError, match="Cannot parse file"):
        tf.train.import_meta_graph(str(tmp_path / "bad.meta"))


def test_queue_runners_come_back_and_run() -> None:
    queue = tf.train.range_input_producer(4, shuffle=False)
    item = queue.dequeue()
    meta = tf.train.export_meta_graph()
    assert meta.collection_def["queue_runners"].WhichOneof("kind") == "bytes_list"
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(meta, import_scope="again")
        (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert runner.name == f"again/{queue.name}"
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert [session.run(f"again/{item.name}") for _ in range(5)] == [0, 1, 2, 3, 0]
        coordinator.request_stop()
        coordinator.join(threads)


def test_parameters_come_back() -> None:
    from opdock.contrib.training import HParams

    tf.add_to_collection("hparams", HParams(rate=0.5, sizes=[3, 4]))
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        (parameters,) = tf.get_collection("hparams")
    assert parameters.values() == {"rate": 0.5, "sizes": [3, 4]}


@pytest.mark.parametrize("key", ["variables", "trainable_variables", "queue_runners"])
def test_numbers_are_no_messages(key: str) -> None:
    meta = tf.train.export_meta_graph()
    meta.collection_def[key].int64_list.value.append(3)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=f"'{key}' has int64_list"):
        tf.train.import_meta_graph(meta)


def test_collections_that_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    tf.add_to_collection("odd", object())
    meta = tf.train.export_meta_graph()
    assert "odd" not in meta.collection_def
    assert "odd" in caplog.text


def test_what_has_a_name_but_no_node_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    parts = tf.get_variable("parts", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.add_to_collection("shared", parts)  # as shared_embedding_columns do
    meta = tf.train.export_meta_graph()
    assert "shared" not in meta.collection_def
    assert "shared" in caplog.text
    # TensorFlow writes the name.
    meta.collection_def["shared"].node_list.value.extend(["parts", "parts/part_1"])
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta)
        assert graph.get_collection("shared") == [graph.get_operation_by_name("parts/part_1")]
    assert "Left out of collection shared" in caplog.text


def test_savers_in_a_collection() -> None:
    model()
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    meta = tf.train.export_meta_graph(clear_devices=True)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        (saver,) = tf.get_collection(tf.GraphKeys.SAVERS)
        assert saver.as_saver_def().restore_op_name == "save/restore_all"
