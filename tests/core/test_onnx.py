"""Graphs as ONNX models and back: equal results, sound models, and what cannot be is told."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import onnx
import pytest

import opdock as tf
from opdock.onnx import from_onnx, read_model, to_onnx, write_model
from opdock.tools.convert import convert

RNG = np.random.RandomState(11)
IMAGES = RNG.randn(2, 9, 8, 4).astype(np.float32)
ROWS = RNG.randn(5, 6).astype(np.float32)
POSITIVE = np.abs(ROWS) + 0.5


def weights(*shape):
    return tf.constant(RNG.randn(*shape).astype(np.float32))


def pooled(pool, padding, data_format="NHWC"):
    def build(x):
        first = data_format == "NCHW"
        x = tf.transpose(x, [0, 3, 1, 2]) if first else x
        window = [1, 1, 3, 2] if first else [1, 3, 2, 1]
        strides = [1, 1, 2, 2] if first else [1, 2, 2, 1]
        return pool(x, window, strides, padding, data_format=data_format)

    return build


def convolved(padding, strides=1, dilations=1, channels=4):
    def build(x):
        return tf.nn.conv2d(
            x, weights(3, 2, channels, 8), [1, strides, strides, 1], padding,
            dilations=[1, dilations, dilations, 1],
        )  # fmt: skip

    return build


def normalized(x):
    scale, offset, mean = (tf.constant(RNG.randn(4).astype(np.float32)) for _ in range(3))
    return tf.nn.fused_batch_norm(x, scale, offset, mean, tf.abs(mean) + 0.5, is_training=False)[0]


UNARY = [
    tf.abs, tf.tanh, tf.sigmoid, tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.leaky_relu,
    tf.nn.softplus, tf.nn.softsign, tf.exp, tf.floor, tf.ceil, tf.sin, tf.cos, tf.square, tf.sign,
    tf.negative, tf.erf, tf.round, tf.nn.softmax, tf.nn.log_softmax, tf.identity, tf.atan,
]  # fmt: skip
GRAPHS = {
    **{f.__name__: (f, ROWS) for f in UNARY},
    **{f.__name__: (f, POSITIVE) for f in (tf.sqrt, tf.rsqrt, tf.log, tf.reciprocal)},
    "binary": (lambda x: (x + 1.5) * x - x / (x * x + 2.0) + tf.maximum(x, 0.1) ** 2.0, ROWS),
    "compared": (lambda x: tf.where(tf.logical_and(x > 0, tf.not_equal(x, 1)), x, -x), ROWS),
    "clipped": (lambda x: tf.clip_by_value(x, -0.5, 0.7), ROWS),
    "sums": (lambda x: tf.add_n([x, x, tf.squared_difference(x, 0.5)]), ROWS),
    "product": (lambda x: tf.nn.bias_add(tf.matmul(x, weights(7, 6), transpose_b=True), weights(7)),
                ROWS),
    "batches": (lambda x: tf.matmul(x, x, transpose_b=True), RNG.randn(2, 3, 4).astype("f")),
    "mean": (lambda x: tf.reduce_mean(x, [1, 2]), IMAGES),
    "folds": (lambda x: tf.reduce_sum(x, -1, keepdims=True) + tf.reduce_max(x) * tf.reduce_min(
        x, 1, keepdims=True) + tf.reduce_prod(x, [0], keepdims=True), IMAGES),
    "largest": (lambda x: tf.cast(tf.argmax(x, 1, output_type=tf.int32), tf.float32), ROWS),
    "conv_same": (convolved("SAME", 2), IMAGES),
    "conv_valid": (convolved("VALID", dilations=2), IMAGES),
    "conv_groups": (convolved([[0, 0], [2, 1], [0, 3], [0, 0]]), IMAGES),
    "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, weights(3, 3, 4, 2), [1, 2, 2, 1], "SAME"),
                  IMAGES),
    "max_same": (pooled(tf.nn.max_pool, "SAME"), IMAGES),
    "mean_same": (pooled(tf.nn.avg_pool, "SAME"), IMAGES),
    "mean_valid": (pooled(tf.nn.avg_pool, "VALID"), IMAGES),
    "normalized": (normalized, IMAGES),
    "shapes": (lambda x: tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [-1, 36]), IMAGES),
    "flattened": (lambda x: tf.reshape(x, [tf.shape(x)[0], 9 * 8 * 4]), IMAGES),
    "axes": (lambda x: tf.squeeze(tf.expand_dims(tf.expand_dims(x, 0), -1), [0]), ROWS),
    "joined": (lambda x: tf.concat([x, tf.stack([x[0], x[1]])], 0), ROWS),
    "parts": (lambda x: tf.concat(tf.split(x, [1, 3, 2], 1)[::-1] + tf.split(x, 3, 1), 1), ROWS),
    "unstacked": (lambda x: tf.add_n(tf.unstack(x, axis=1)), ROWS),
    "cut": (lambda x: x[1:4, ::-2][:, 1] + tf.slice(x, [1, 2], [3, 1])[:, 0] * x[-4:-1, -1], ROWS),
    "padded": (lambda x: tf.pad(tf.pad(x, [[1, 0], [2, 3]], constant_values=4.0), [[1, 1], [2, 0]],
                                "REFLECT"), ROWS),
    "gathered": (lambda x: tf.gather(x, [[3, 1], [0, 5]], axis=1), ROWS),
    "tiled": (lambda x: tf.tile(x, [2, 1]) + tf.fill([10, 6], 2.0), ROWS),
    "blocks": (lambda x: tf.depth_to_space(tf.space_to_depth(x[:, :8], 4), 2), IMAGES),
    "resized": (lambda x: tf.image.resize_bilinear(x, [5, 12]), IMAGES),
}  # fmt: skip
ONE_WAY = {"resized"}
"""Written only: reading has no rule for them."""


def graph_of(build, value, shape=None):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, value.shape if shape is None else shape, name="x")
        tf.identity(build(x), name="y")
        return graph.as_graph_def()


def run(graph_def, value, source="x:0", target="y:0"):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run(target, {source: value})


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_there_and_back_is_equal(name):
    build, value = GRAPHS[name]
    graph_def = graph_of(build, value)
    model = to_onnx(graph_def, ["x"], ["y"])
    onnx.checker.check_model(model, full_check=True)
    if name in ONE_WAY:
        return
    back = from_onnx(onnx.ModelProto.FromString(model.SerializeToString()))
    assert (back.inputs, back.outputs) == ({"x": "x:0"}, {"y": "y:0"})
    found, expected = run(back.graph_def, value), run(graph_def, value)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    # And once more: what is read can be written again.
    again = from_onnx(to_onnx(back.graph_def, ["x"], ["y"])).graph_def
    np.testing.assert_allclose(run(again, value), expected, rtol=2e-5, atol=2e-6)


RUNTIME = os.environ.get("OPDOCK_TEST_ONNXRUNTIME", "")
COMPUTE = """
import sys, numpy, onnxruntime
for name in sys.argv[2:]:
    path = f"{sys.argv[1]}/{name}"
    session = onnxruntime.InferenceSession(path + ".onnx")
    numpy.save(path + ".y.npy", session.run(None, {"x": numpy.load(path + ".x.npy")})[0])
"""


@pytest.mark.skipif(
    not RUNTIME, reason="OPDOCK_TEST_ONNXRUNTIME names no Python that has onnxruntime"
)
def test_onnx_runtime_computes_the_same(tmp_path):
    for name, (build, value) in GRAPHS.items():
        graph_def = graph_of(build, value)
        write_model(tmp_path / f"{name}.onnx", to_onnx(graph_def, ["x"], ["y"]))
        np.save(tmp_path / f"{name}.x.npy", value)
        np.save(tmp_path / f"{name}.expected.npy", run(graph_def, value))
    subprocess.run([RUNTIME, "-c", COMPUTE, str(tmp_path), *GRAPHS], check=True)
    for name in GRAPHS:
        found, expected = (np.load(tmp_path / f"{name}.{k}.npy") for k in ("y", "expected"))
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5, err_msg=name)


def test_sizes_may_be_open():
    def build(x):
        return tf.nn.softmax(tf.layers.flatten(tf.nn.relu(convolved("SAME")(x))))

    graph_def = graph_of(build, IMAGES, [None, 9, 8, 4])
    model = to_onnx(graph_def, ["x"], ["y"])
    first = model.graph.input[0].type.tensor_type.shape.dim[0]
    assert first.dim_param and not first.HasField("dim_value")
    back = from_onnx(model).graph_def
    np.testing.assert_allclose(run(back, IMAGES[:1]), run(graph_def, IMAGES[:1]), atol=1e-6)


# ---------------------------------------------------------------- what others write
def model_of(nodes, tensors=(), shape=(2, 4, 9, 8), opset=17):
    helper = onnx.helper
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
        for name, dims in (("x", shape), ("y", None))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def test_layers_with_padding_of_their_own():
    node, images = onnx.helper.make_node, IMAGES.transpose(0, 3, 1, 2).copy()
    kernel = onnx.numpy_helper.from_array(RNG.randn(6, 4, 3, 3).astype(np.float32), "w")
    bias = onnx.numpy_helper.from_array(RNG.randn(6).astype(np.float32), "b")
    model = model_of(
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 2, 0, 1], strides=[2, 1]),
            node("MaxPool", ["c"], ["m"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("AveragePool", ["m"], ["a"], kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
            node("GlobalAveragePool", ["a"], ["f"]),
            node("Flatten", ["f"], ["y"]),
        ],
        [kernel, bias],
    )
    reference = pytest.importorskip("onnx.reference").ReferenceEvaluator(model)
    back = from_onnx(model)
    found = run(back.graph_def, images)
    np.testing.assert_allclose(found, reference.run(None, {"x": images})[0], atol=1e-5)


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_products_with_a_summand(beta):
    node = onnx.helper.make_node
    w = onnx.numpy_helper.from_array(RNG.randn(7, 6).astype(np.float32), "w")
    b = onnx.numpy_helper.from_array(RNG.randn(7).astype(np.float32), "b")
    model = model_of(
        [node("Gemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.25, beta=beta)], [w, b], (5, 6)
    )
    w, b = (onnx.numpy_helper.to_array(t) for t in (w, b))
    found = run(from_onnx(model).graph_def, ROWS)
    np.testing.assert_allclose(found, 0.25 * ROWS @ w.T + beta * b, atol=1e-5)


# ---------------------------------------------------------------- what cannot be
def test_all_that_has_no_rule_is_told_at_once():
    graph_def = graph_of(lambda x: tf.lgamma(tf.digamma(x)) + tf.lgamma(x), ROWS)
    with pytest.raises(tf.errors.UnimplementedError) as told:
        to_onnx(graph_def, ["x"], ["y"])
    assert "3 nodes cannot be translated into ONNX" in told.value.message
    assert "Lgamma (2): there is no rule for it" in told.value.message
    node = onnx.helper.make_node
    model = model_of([node("Det", ["x"], ["d"]), node("Loop", ["d"], ["e"]),
                      node("Add", ["d", "e"], ["y"])])  # fmt: skip
    with pytest.raises(tf.errors.UnimplementedError, match=r"2 nodes.*\n.*Det.*\n.*Loop"):
        from_onnx(model)


def test_names_that_are_not_there():
    graph_def = graph_of(tf.tanh, ROWS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="There is no node 'z'"):
        to_onnx(graph_def, ["x"], ["z"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder that is not among"):
        to_onnx(graph_def, [], ["y"])


def broken(change):
    w = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    model = model_of([onnx.helper.make_node("Add", ["x", "w"], ["y"])], [w], (4, 4))
    change(model)
    return model


def _set(name, value):
    return lambda model: setattr(model.graph.initializer[0], name, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("raw_data", b"short"), "has 5 bytes, expected 64"),
        (lambda m: m.graph.initializer[0].dims.append(1 << 60), "too many dimensions or elements"),
        (lambda m: m.graph.initializer[0].dims.extend([1] * 70), "too many dimensions or elements"),
        (lambda m: m.graph.initializer[0].dims.__setitem__(0, -4), "negative dimension"),
        (_set("data_location", 1), "lies in another file"),
        (_set("data_type", 99), "element type 99"),
        (lambda m: m.graph.node[0].input.__setitem__(1, "gone"), "takes 'gone', which nothing"),
        (lambda m: setattr(m.opset_import[0], "version", 5), "version 5 of ONNX's ops"),
        (lambda m: m.graph.initializer[0].dims.__setitem__(slice(None), [16]), "node 'y'"),
    ],
)
def test_models_that_are_not_sound(change, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        from_onnx(broken(change))


def test_files_that_hold_no_model(tmp_path):
    path = tmp_path / "model.onnx"
    for data in (b"", b"\xff\xff\xff\xff", b"no model"):
        path.write_bytes(data)
        with pytest.raises(tf.errors.DataLossError, match="holds no ONNX model"):
            read_model(path)


# ---------------------------------------------------------------- the command
def test_every_kind_becomes_every_other(tmp_path):
    names = {kind: str(tmp_path / f"model{kind}") for kind in (".pb", ".pbtxt", ".onnx", "")}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 6], name="x")
        y = tf.layers.dense(x, 3, tf.nn.relu, name="layer")
        session.run(tf.global_variables_initializer())
        expected = session.run(y, {x: ROWS})
        tf.saved_model.simple_save(session, names[""], {"rows": x}, {"scores": y})
        assert graph.get_operations()
    convert(names[""], names[".pb"])
    ends = {"inputs": ["x"], "outputs": [y.name]}
    convert(names[".pb"], names[".onnx"], **ends)
    convert(names[".pb"], names[".pbtxt"], **ends)
    convert(names[".onnx"], str(tmp_path / "again"))
    last = convert(str(tmp_path / "again"), str(tmp_path / "last.pb"))
    for graph_def in (tf.GraphDef.FromString((tmp_path / "model.pb").read_bytes()), last.graph_def):
        np.testing.assert_allclose(
            run(graph_def, ROWS, target=next(iter(last.outputs.values()))), expected, rtol=1e-5
        )


def test_what_is_wrong_with_a_conversion(tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_of(tf.lgamma, ROWS).SerializeToString())
    target = tmp_path / "out.onnx"
    with pytest.raises(ValueError, match="give --inputs and --outputs"):
        convert(str(path), str(target))
    with pytest.raises(tf.errors.NotFoundError, match="has no nodes z"):
        convert(str(path), str(target), ["x"], ["z"])
    with pytest.raises(tf.errors.UnimplementedError, match="Lgamma"):
        convert(str(path), str(target), ["x"], ["y"])
    assert not target.exists()
