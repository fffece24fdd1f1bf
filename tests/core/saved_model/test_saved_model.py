"""SavedModels: what is written, what is read, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tensorboard.compat.proto import meta_graph_pb2

import opdock as tf
from opdock.data.spec import DatasetSpec
from opdock.io import protos
from opdock.saved_model import builder as builder_module
from opdock.saved_model import loader, signature_def_utils, utils
from opdock.saved_model.nested_structure_coder import NotEncodableError, StructureCoder


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def model(session: tf.Session) -> dict[str, Any]:
    """y = w * x with w = 3, and its signature."""
    x = tf.placeholder(tf.float32, [None], name="x")
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    y = tf.multiply(x, w, name="y")
    session.run(tf.global_variables_initializer())
    return {"serving_default": tf.saved_model.predict_signature_def({"x": x}, {"y": y})}


def test_saved_and_loaded(tmp_path: Path) -> None:
    with tf.Session() as session:
        signatures = model(session)
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.add_meta_graph(["serve", "gpu"])
        path = builder.save()
    assert path == os.fsencode(tmp_path / "m" / "saved_model.pb")
    assert tf.saved_model.maybe_saved_model_directory(str(tmp_path / "m"))
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.load(session, ["serve"], str(tmp_path / "m"), import_scope="in")
        signature = meta.signature_def["serving_default"]
        assert signature.inputs["x"].name == "x:0"
        assert tf.saved_model.is_valid_signature(signature)
        y = tf.saved_model.get_tensor_from_tensor_info(signature.outputs["y"], import_scope="in")
        assert session.run(y, {"in/x:0": [1.0, 2.0]}).tolist() == [3.0, 6.0]
    with tf.Session(graph=tf.Graph()) as session:
        assert not loader.load(session, ["gpu", "serve"], str(tmp_path / "m")).signature_def
        with pytest.raises(RuntimeError, match=r"(?s)tags .*nobody.*available_tags: .*serve"):
            loader.load(session, {"nobody"}, str(tmp_path / "m"))


@pytest.mark.parametrize("name", ["/etc/passwd", "../../words.txt", "a/../../words.txt", "a\0b"])
def test_assets_outside_of_the_model(name: str) -> None:
    """TensorFlow would have the graph read the file."""
    meta = protos.MetaGraphDef()
    meta.asset_file_def.add(filename=name).tensor_info.name = "asset:0"
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside of its folder /m/assets"):
        loader.get_asset_tensors("/m", meta)
    meta.asset_file_def[0].filename = "a/words.txt"
    assert loader.get_asset_tensors("/m", meta) == {"asset:0": b"/m/assets/a/words.txt"}


@pytest.mark.parametrize("as_text", [False, True])
def test_assets_and_the_main_op(tmp_path: Path, as_text: bool) -> None:
    for folder, words in (("one", "a b"), ("two", "c")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_text(words)
    paths = [str(tmp_path / folder / "words.txt") for folder in ("one", "two", "one")]
    with tf.Session() as session:
        assets = [tf.constant(path, name=f"asset{i}") for i, path in enumerate(paths)]
        read = tf.Variable("", name="read", collections=[])
        model(session)
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(
            session, ["serve"], assets_collection=assets,
            main_op=tf.group(read.assign(tf.read_file(assets[1]))),
        )  # fmt: skip
        builder.save(as_text=as_text)
    assert sorted(os.listdir(tmp_path / "m" / "assets")) == ["words.txt", "words.txt_1"]
    # The file names TensorFlow's type; in memory it is that of the class that is there.
    name = "saved_model.pbtxt" if as_text else "saved_model.pb"
    written = (tmp_path / "m" / name).read_bytes()
    assert b"type.googleapis.com/tensorflow.AssetFileDef" in written
    assert b"tensorboard" not in written
    os.rename(tmp_path / "m", tmp_path / "moved")
    with tf.Session(graph=tf.Graph()) as session:
        meta = loader.load(session, ["serve"], str(tmp_path / "moved"))
        assert session.run("read:0") == b"c"
        packed = meta.collection_def["saved_model_assets"].any_list.value
        asset = meta_graph_pb2.AssetFileDef()
        assert packed[1].Unpack(asset)
        assert (asset.filename, asset.tensor_info.name) == ("words.txt_1", "asset1:0")


def test_ops_in_signatures(tmp_path: Path) -> None:
    with tf.Session() as session:
        signatures = model(session)
        count = tf.Variable(0, name="count", collections=[])
        train = tf.no_op("train")
        builder = builder_module._SavedModelBuilder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, init_op=count.assign(7).op, train_op=train
        )
        builder.save()
    with tf.Session(graph=tf.Graph()) as session:
        meta = loader.load(session, ["serve"], str(tmp_path / "m"))
        assert session.run("count:0") == 7
        assert loader.get_train_op(meta).name == "train"


def test_a_model_is_there_when_it_is_whole(tmp_path: Path) -> None:
    with tf.Session() as session:
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        builder.add_meta_graph_and_variables(session, ["serve"], model(session))
    assert os.listdir(tmp_path / "m") == ["variables"]
    assert not tf.saved_model.contains_saved_model(str(tmp_path / "m"))
    with pytest.raises(OSError, match=r"does not exist at: .*/m/\{saved_model.pbtxt"):
        loader.parse_saved_model(str(tmp_path / "m"))
    with pytest.raises(AssertionError, match="isn't empty"):
        tf.saved_model.Builder(str(tmp_path / "m"))
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(OSError, match="Cannot parse file"):
        loader.parse_saved_model(str(tmp_path / "m"))


def test_what_builders_refuse(tmp_path: Path) -> None:
    with tf.Session() as session:
        signatures = model(session)
        builder = tf.saved_model.Builder(str(tmp_path / "m"))
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["serve"])
        nameless = protos.TensorInfo(dtype=1)
        for info, match in ((nameless, "encoding"), (protos.TensorInfo(name="x:0"), "dtype field")):
            bad = {"s": signature_def_utils.build_signature_def({"x": info})}
            with pytest.raises(AssertionError, match=match):
                builder.add_meta_graph_and_variables(session, ["serve"], bad)
        with pytest.raises(KeyError, match="reserved for initialization"):
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"__saved_model_init_op": signatures["serving_default"]}
            )
        with pytest.raises(TypeError, match="main_op needs to be an Operation"):
            builder.add_meta_graph_and_variables(session, ["serve"], main_op=tf.constant(1))
        for tensor, match in (
            ("path", "must be a Tensor"), (tf.placeholder(tf.string), "of type constant"),
            (tf.constant(1), "of dtype string"), (tf.constant(["a", "b"]), "must be a scalar"),
        ):  # fmt: skip
            with pytest.raises(TypeError, match=match):
                builder.add_meta_graph_and_variables(session, ["s"], assets_collection=[tensor])
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        with pytest.raises(AssertionError, match="already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"], signatures)


def test_simple_save(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as session:
        tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": x + 1})
    with tf.Session(graph=tf.Graph()) as session:
        meta = loader.load(session, [tf.saved_model.tag_constants.SERVING], str(tmp_path / "m"))
        assert meta.meta_info_def.tensorflow_git_version == tf.GIT_VERSION
        name = meta.signature_def["serving_default"].outputs["y"].name
        assert session.run(name, {"x:0": [1.0, 2.0]}).tolist() == [2.0, 3.0]


def test_what_is_wrong_with_a_name_is_told_before_what_is_wrong_with_its_value() -> None:
    for outputs, what in (({25: "no tensor"}, "key must be"), ("no tensor", "value must be")):
        with pytest.raises(ValueError, match=f"Prediction output {what}"):
            tf.estimator.export.PredictOutput(outputs)


def test_signatures() -> None:
    text, number = tf.placeholder(tf.string, name="t"), tf.placeholder(tf.float32, name="n")
    regress = tf.saved_model.regression_signature_def(text, number)
    classify = tf.saved_model.classification_signature_def(text, None, number)
    assert all(map(tf.saved_model.is_valid_signature, (regress, classify)))
    regress.outputs["outputs"].dtype = 2
    assert not tf.saved_model.is_valid_signature(regress)
    assert not tf.saved_model.is_valid_signature(None)
    for call, match in (
        (lambda: tf.saved_model.regression_signature_def(None, number), "examples cannot be None"),
        (lambda: tf.saved_model.regression_signature_def(number, number), "a string Tensor"),
        (lambda: tf.saved_model.regression_signature_def(text, text), "a float Tensor"),
        (lambda: tf.saved_model.classification_signature_def(text, None, None), "both be None"),
        (lambda: tf.saved_model.predict_signature_def({}, {"y": number}), "inputs cannot be"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_tensor_infos() -> None:
    sparse = tf.sparse_placeholder(tf.float32, [3, 4], name="s")
    info = utils.build_tensor_info(sparse)
    assert info.coo_sparse.values_tensor_name == sparse.values.name
    found = utils.get_tensor_from_tensor_info(info)
    assert (found.indices, found.values) == (sparse.indices, sparse.values)
    with pytest.raises(ValueError, match="Invalid TensorInfo.encoding"):
        utils.get_tensor_from_tensor_info(protos.TensorInfo())


def test_tensor_infos_of_tensors_with_parts() -> None:
    ragged = tf.ragged.constant([[[1]], [[2, 3], []]])
    info = utils.build_tensor_info(ragged)
    names = [part.name for part in info.composite_tensor.components]
    assert names == [t.name for t in (ragged.flat_values, *ragged.nested_row_splits)]
    with tf.Session() as session:
        found = session.run(utils.get_tensor_from_tensor_info(info))
    assert found.to_list() == [[[1]], [[2, 3], []]]


# ---------------------------------------------------------------- structures
class Point(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize(
    "structure",
    [
        [1, (2.5, "word"), {"a": None, "b": [True, -3]}],
        [[], (), {}],
        Point([1, 2], tf.TensorShape([None, 3])),
        [tf.float32, tf.TensorShape(None), tf.TensorSpec([2, None], tf.int64, "x")],
        (tf.SparseTensorSpec([3, 4], tf.float64), tf.RaggedTensorSpec([2, None], tf.int32)),
        DatasetSpec({"x": tf.TensorSpec([], tf.string)}),
    ],
)
def test_structures_are_written_and_read(structure: Any) -> None:
    coder = StructureCoder()
    assert coder.can_encode(structure)
    found = coder.decode_proto(coder.encode_structure(structure))
    assert found == structure or repr(found) == repr(structure)
    assert isinstance(found, tuple) == isinstance(structure, tuple)


def test_what_has_no_form_is_refused() -> None:
    coder = StructureCoder()
    assert not coder.can_encode([object()]) and not coder.can_encode({1: 2})
    unknown = protos.StructuredValue()
    with pytest.raises(NotEncodableError, match="kind None"):
        coder.decode_proto(unknown)
    unknown.type_spec_value.type_spec_class_name = "LaterSpec"
    with pytest.raises(ValueError, match="The type 'LaterSpec' is not supported"):
        coder.decode_proto(unknown)


def test_the_op_that_a_loaded_graph_begins_with(tmp_path):
    start = tf.no_op("start")
    builder = tf.saved_model.Builder(str(tmp_path / "m"))
    with tf.Session() as sess:
        builder.add_meta_graph_and_variables(sess, ["serve"], main_op=start)
    builder.save()
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.load(sess, ["serve"], str(tmp_path / "m"))
        assert loader.op_of_collection(meta).name == "start"
        assert loader.op_of_collection(meta, "legacy_init_op") is None
        meta.collection_def["saved_model_main_op"].node_list.value.append("another")
        with pytest.raises(RuntimeError, match="exactly one SavedModel init op"):
            loader.op_of_collection(meta)
