"""`quantize_layers`: layers in one 8-bit op each give what they gave, weights by channel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.transforms import transform_graph
from tests.core.transforms.graphs import ops

RNG = np.random.RandomState(2)
IMAGES = RNG.uniform(-1, 1, (4, 8, 8, 3)).astype(np.float32)
LOG = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'
EIGHT = "quantize_weights(minimum_size=16) quantize_nodes"
RELU = "QuantizedConv2DWithBiasAndReluAndRequantize"


def conv(x: Any, outputs: int, size: int = 3, stride: int = 1, bias: str = "bias") -> Any:
    """A convolution whose channels differ a hundredfold, as folded normalizations leave them."""
    channels = x.shape.as_list()[-1]
    weights = RNG.uniform(-1, 1, (size, size, channels, outputs)) / (size * size * channels) ** 0.5
    weights *= np.geomspace(0.05, 5, outputs)
    y = tf.nn.conv2d(x, tf.constant(weights.astype(np.float32)), [1, stride, stride, 1], "SAME")
    vector = tf.constant(RNG.uniform(0, 0.1, outputs).astype(np.float32))
    return {"bias": lambda: tf.nn.bias_add(y, vector), "sum": lambda: y + vector, "": lambda: y}[
        bias
    ]()


def residual() -> Any:
    """A block with a way around that is the images, and one with a convolution there."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    y = tf.nn.relu(conv(x, 8), name="first")
    z = conv(tf.nn.relu(conv(y, 8, bias="sum")), 8)
    y = tf.nn.relu(z + y, name="around")
    z = conv(tf.nn.relu(conv(y, 16, stride=2)), 16, bias="")
    y = tf.nn.relu(conv(y, 16, 1, 2) + z, name="turned")
    y = tf.reshape(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), [-1, 64])
    return tf.identity(y, name="y")


def of(build: Any) -> Any:
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()


def ran(graph_def: Any, *names: str) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run([f"{n}:0" for n in names], {"x:0": IMAGES})


@pytest.fixture
def logged(tmp_path: Path, capfd: Any) -> Any:
    """Writes the ranges of a graph; gives the transform's call."""

    def write(graph_def: Any, *outputs: str) -> str:
        eight = transform_graph(graph_def, ["x"], outputs, f"{EIGHT} {LOG}")
        capfd.readouterr()
        ran(eight, *outputs)
        log = tmp_path / "log.txt"
        log.write_text(capfd.readouterr().err, encoding="utf-8")
        return f'quantize_layers(min_max_log_file="{log}", min_percentile=0, max_percentile=0)'

    return write


def test_a_residual_network(logged: Any) -> None:
    before = of(residual)
    after = transform_graph(before, ["x"], ["y"], logged(before, "y"))
    kinds = [op for op in ops(after) if op not in ("Const", "Dequantize")]
    assert kinds.count("Conv2D") == 1  # of images that may be negative
    assert kinds.count(RELU) == 2
    assert kinds.count("QuantizedConv2DWithBiasAndRequantize") == 1
    assert kinds.count("QuantizedConv2DWithBiasSumAndReluAndRequantize") == 1
    assert kinds.count("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize") == 1
    assert {"QuantizedMaxPool", "QuantizedReshape"} <= set(kinds)
    (want,), (got,) = ran(before, "y"), ran(after, "y")
    np.testing.assert_allclose(got, want, rtol=0, atol=0.04 * want.max())
    # With one range for all channels the smallest ones have no bits left.
    by_tensor = transform_graph(before, ["x"], ["y"], f"{EIGHT} fold_constants")
    (other,) = ran(by_tensor, "y")
    assert np.abs(got - want).mean() < 0.5 * np.abs(other - want).mean()


def test_what_others_take_keeps_its_name(logged: Any) -> None:
    before = of(residual)
    outputs = ["first", "around", "turned", "y"]
    after = transform_graph(before, ["x"], outputs, logged(before, *outputs))
    for want, got in zip(ran(before, *outputs), ran(after, *outputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=0.04 * want.max())


def test_layers_that_stay(logged: Any) -> None:
    """A sum inside that is taken elsewhere, no Relu behind, other layouts, no constant weights."""

    def build() -> None:
        x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
        y = tf.nn.relu(conv(x, 8))
        inner = conv(y, 8)
        tf.nn.relu(inner)
        tf.identity(inner, name="inner")
        last = conv(y, 8, bias="")
        weights = tf.reduce_sum(x) * tf.ones([3, 3, 8, 4])
        other = tf.nn.relu(tf.nn.conv2d(y, weights, [1, 1, 1, 1], "SAME"))
        wide = tf.nn.relu(tf.nn.conv2d(y, tf.ones([3, 3, 8, 4]), [1, 1, 1, 1], "SAME",
                                       dilations=[1, 2, 2, 1]))  # fmt: skip
        tf.concat([inner, last, other, wide], 3, name="y")

    before = of(build)
    after = transform_graph(before, ["x"], ["y"], logged(before, "y"))
    assert not any(op.startswith("Quantized") for op in ops(after))
    assert sorted(ops(after)).count("Conv2D") == 5


def test_ranges_of_other_graphs_change_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    line = ";other/eightbit/requant_range__print__;__requant_min_max:[-1][1]\n"
    log.write_text(line, encoding="utf-8")
    before = of(residual)
    call = f'quantize_layers(min_max_log_file="{log}")'
    assert sorted(ops(transform_graph(before, ["x"], ["y"], call))) == sorted(ops(before))
    log.write_text("nothing", encoding="utf-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match="No min/max range logs"):
        transform_graph(before, ["x"], ["y"], call)
    with pytest.raises(tf.errors.NotFoundError):
        transform_graph(before, ["x"], ["y"], 'quantize_layers(min_max_log_file="none")')
