"""`optimize_for_inference`: a frozen graph without its batch normalizations computes the same."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.tools import optimize_for_inference_lib as lib

FLOAT = tf.float32.as_datatype_enum
IMAGES = np.random.RandomState(0).standard_normal((2, 5, 5, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def frozen(depthwise: bool = False, training: bool = False, reused: bool = False) -> Any:
    """The GraphDef of a convolution and a batch normalization, from x to y."""
    random = np.random.RandomState(1)

    def part(*shape: int) -> Any:
        return tf.constant(random.uniform(0.5, 2, shape), tf.float32)

    x = tf.placeholder(tf.float32, [None, 5, 5, 3], name="x")
    if depthwise:
        conv = tf.nn.depthwise_conv2d_native(x, part(3, 3, 3, 2), [1, 1, 1, 1], "SAME")
    else:
        conv = tf.nn.conv2d(x, part(3, 3, 3, 6), [1, 2, 2, 1], "SAME")
    normal = tf.nn.fused_batch_norm(
        tf.check_numerics(conv, "conv") if training else conv, part(6), part(6),
        None if training else part(6), None if training else part(6), is_training=training,
    )[0]  # fmt: skip
    tf.add(tf.identity(normal), conv if reused else 1.0, name="y")
    tf.multiply(x, 2.0, name="unused")
    return tf.get_default_graph().as_graph_def()


def computed(graph_def: Any) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run("y:0", {"x:0": IMAGES})


@pytest.mark.parametrize("depthwise", [False, True])
def test_normalization_goes_into_the_weights(depthwise: bool) -> None:
    graph_def = frozen(depthwise)
    before = graph_def.SerializeToString(deterministic=True)
    small = lib.optimize_for_inference(graph_def, ["x"], ["y"], FLOAT)
    assert graph_def.SerializeToString(deterministic=True) == before
    conv = "DepthwiseConv2dNative" if depthwise else "Conv2D"
    assert sorted(n.op for n in small.node) == sorted(
        ["Placeholder", "Const", "Const", "Const", conv, "BiasAdd", "Add"]
    )
    np.testing.assert_allclose(computed(small), computed(graph_def), rtol=1e-4, atol=1e-4)


def test_the_older_op() -> None:
    graph_def = frozen()
    older = tf.GraphDef()
    older.CopyFrom(graph_def)
    (norm,) = (n for n in older.node if n.op == "FusedBatchNormV3")
    conv, gamma, beta, mean, variance = norm.input
    norm.op, norm.input[:] = "BatchNormWithGlobalNormalization", [conv, mean, variance, beta, gamma]
    norm.attr["variance_epsilon"].f = norm.attr["epsilon"].f
    norm.attr["scale_after_normalization"].b = True
    folded = lib.fold_batch_norms(older)
    np.testing.assert_allclose(computed(folded), computed(graph_def), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("how", "why"),
    [({"reused": True}, "has other uses"), ({"training": True}, "CheckNumerics")],
)
def test_what_cannot_be_folded_stays(how: dict[str, bool], why: str, caplog: Any) -> None:
    graph_def = frozen(**how)
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    try:
        small = lib.fold_batch_norms(graph_def)
    finally:
        logger.removeHandler(caplog.handler)
    assert why in caplog.text
    assert [n.name for n in small.node] == [n.name for n in graph_def.node]


@pytest.mark.parametrize(
    ("resize", "mirror", "reused", "ops"),
    [
        (True, True, False, ["FusedResizeAndPadConv2D"]),
        (True, False, False, ["FusedResizeAndPadConv2D"]),
        (False, True, False, ["FusedPadConv2D"]),
        (True, True, True, ["FusedResizeAndPadConv2D", "ResizeBilinear"]),
    ],
)
def test_resizes_and_margins_go_into_the_convolution(
    resize: bool, mirror: bool, reused: bool, ops: list[str]
) -> None:
    x = image = tf.placeholder(tf.float32, [None, 5, 5, 3], name="x")
    if resize:
        image = resized = tf.image.resize_bilinear(x, [7, 9], align_corners=True)
    if mirror:
        image = tf.pad(image, [[0, 0], [1, 2], [2, 1], [0, 0]], "REFLECT")
    kernel = tf.constant(np.random.RandomState(1).standard_normal((3, 2, 3, 4)), tf.float32)
    y = tf.nn.conv2d(image, kernel, 1 + (not reused), "VALID")
    outputs = ["y"]
    if reused:
        tf.identity(resized, name="z")
        outputs.append("z")
    tf.identity(y, name="y")
    graph_def = tf.get_default_graph().as_graph_def()
    small = lib.optimize_for_inference(graph_def, ["x"], outputs, FLOAT)
    kept = [n.op for n in small.node if n.op not in ("Const", "Placeholder", "Identity")]
    assert sorted(kept) == ops
    np.testing.assert_allclose(computed(small), computed(graph_def), rtol=1e-4, atol=1e-4)
    same = lib.optimize_for_inference(graph_def, ["x"], outputs, FLOAT, toco_compatible=True)
    assert "Conv2D" in {n.op for n in same.node}


def test_convolutions_of_other_kinds_stay() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 5, 3], name="x")
    wide = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    tf.nn.conv2d(wide, tf.ones([2, 2, 3, 4]), 1, "VALID", dilations=[1, 2, 2, 1], name="y")
    small = lib.fuse_resize_and_conv(tf.get_default_graph().as_graph_def(), ["y"])
    assert {"MirrorPad", "Conv2D"} <= {n.op for n in small.node}


def test_broken_graphs() -> None:
    graph_def = frozen()
    graph_def.node[-1].input[0] = "nothing:1"
    with pytest.raises(ValueError, match="Input for unused not found: nothing:1"):
        lib.optimize_for_inference(graph_def, ["x"], ["y"], FLOAT)
    graph_def.node.add().CopyFrom(graph_def.node[0])
    with pytest.raises(ValueError, match="Duplicate node names detected for x"):
        lib.ensure_graph_is_valid(graph_def)


def test_the_command(tmp_path: Path) -> None:
    source, target = tmp_path / "frozen.pb", tmp_path / "small.pb"
    source.write_bytes(frozen().SerializeToString())
    names = ["--input_names", "x", "--output_names", "y"]
    assert lib.main(["--input", str(source), "--output", str(target), *names]) == 0
    small = tf.GraphDef.FromString(target.read_bytes())
    assert "FusedBatchNorm" not in {n.op for n in small.node}
