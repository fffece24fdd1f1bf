"""Parameters and floating-point operations. The numbers are those that TensorFlow 2.21 gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import opdock as tf
from opdock.profiler.statistics import OpStats, RegisterStatistics, get_stats_for_node_def

BUILDER = tf.profiler.ProfileOptionBuilder
PARAMETERS = BUILDER(BUILDER.trainable_variables_parameter()).with_empty_output().build()
OPERATIONS = BUILDER(BUILDER.float_operation()).with_empty_output().build()


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def given(*shape: int | None) -> Any:
    return tf.placeholder(tf.float32, shape)


def conv_net() -> Any:
    """A loss over ops of most kinds that count."""
    with tf.variable_scope("conv"):
        filters = tf.get_variable("w", [3, 3, 3, 4])
        conv = tf.nn.conv2d(given(2, 8, 8, 3), filters, [1, 2, 2, 1], "SAME")
        hidden = tf.nn.relu(tf.nn.bias_add(conv, tf.get_variable("b", [4])))
    hidden = tf.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    deep = tf.nn.depthwise_conv2d(hidden, tf.get_variable("dw", [2, 2, 4, 2]), [1] * 4, "SAME")
    deep = tf.nn.avg_pool(deep, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    with tf.variable_scope("fc"):
        weights = tf.get_variable("w", [32, 5])
        scores = tf.matmul(tf.reshape(deep, [2, 32]), weights) + tf.get_variable("b", [5])
    tf.get_variable("step", [], trainable=False)
    squares = tf.square(tf.nn.softmax(scores) - 0.5)
    return tf.reduce_mean(tf.reduce_sum(squares, 1)) + tf.nn.l2_loss(weights)


def by_type(graph: tf.Graph) -> dict[str, int]:
    found = {}
    node = tf.profiler.profile(graph, cmd="op", options=OPERATIONS)
    while node.children:
        (node,) = node.children
        found[node.name] = node.float_ops
    return found


@pytest.mark.parametrize("cmd", ["scope", "graph", "op"])
def test_totals_of_a_network(graph: tf.Graph, cmd: str) -> None:
    conv_net()
    assert tf.profiler.profile(graph, cmd=cmd, options=PARAMETERS).total_parameters == 309
    assert tf.profiler.profile(graph, cmd=cmd, options=OPERATIONS).total_float_ops == 9772


def test_operations_by_type_with_gradients(graph: tf.Graph) -> None:
    tf.gradients(conv_net(), tf.trainable_variables())
    wanted = {
        "AddN": 160, "AvgPool": 256, "AvgPoolGrad": 512, "BiasAdd": 128, "BiasAddGrad": 124,
        "Conv2D": 6912, "Conv2DBackpropFilter": 6912, "Conv2DBackpropInput": 6912,
        "DepthwiseConv2dNative": 512, "L2Loss": 479, "MatMul": 1920, "MaxPool": 128,
        "MaxPoolGrad": 160, "Mean": 2, "Mul": 510, "Neg": 10, "Softmax": 50, "Square": 10,
        "Sub": 26, "Sum": 30,
    }  # fmt: skip
    counted = by_type(graph)
    assert {name: counted[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("built", "count"),
    [
        (lambda: tf.matmul(given(7, 3), given(7, 5), transpose_a=True), 210),
        (lambda: tf.matmul(given(2, 3, 4), given(2, 4, 5)), 240),
        (lambda: tf.nn.conv3d(given(1, 4, 4, 4, 2), given(2, 2, 2, 2, 3), [1] * 5, "VALID"), 2592),
        (lambda: tf.nn.dilation2d(
            given(1, 6, 6, 2), given(3, 3, 2), [1] * 4, [1] * 4, "SAME"), 1296),
        (lambda: tf.argmax(given(4, 6), 1), 20),
        (lambda: tf.argmin(given(4, 6), 0), 18),
        (lambda: tf.rsqrt(given(4, 6)), 48),
        (lambda: tf.squared_difference(given(4, 6), given(6)), 48),
        (lambda: tf.less(given(4, 6), given(4, 1)), 24),
        (lambda: tf.reduce_mean(given(4, 6), 0), 24),
        (lambda: tf.add_n([given(4, 6)] * 3), 48),
        (lambda: tf.assign_add(tf.Variable(tf.zeros([3, 4])), given(3, 4)), 12),
        (lambda: tf.nn.conv2d_transpose(
            given(2, 4, 4, 3), given(3, 3, 5, 3), [2, 8, 8, 5], [1, 2, 2, 1]), 8640),
        (lambda: tf.tanh(given(3, 5)), 0),
    ],
)  # fmt: skip
def test_operations_of_single_ops(graph: tf.Graph, built: Callable[[], Any], count: int) -> None:
    built()
    assert tf.profiler.profile(graph, options=OPERATIONS).total_float_ops == count


def test_gradients_of_convolutions_count_in_both_formats(graph: tf.Graph) -> None:
    counts = []
    for format_, shape, strides in (
        ("NHWC", [2, 8, 8, 3], [1, 2, 2, 1]),
        ("NCHW", [2, 3, 8, 8], [1, 1, 2, 2]),
    ):
        with tf.Graph().as_default() as inner:
            images, filters = given(*shape), given(3, 3, 3, 4)
            conv = tf.nn.conv2d(images, filters, strides, "SAME", data_format=format_)
            tf.gradients(conv, [images, filters])
            counts.append(by_type(inner))
    assert counts[0] == counts[1]
    assert counts[0]["Conv2DBackpropInput"] == counts[0]["Conv2DBackpropFilter"] == 6912


def test_bodies_of_loops_and_branches_count_once(graph: tf.Graph) -> None:
    start = given(3, 3)
    _, power = tf.while_loop(
        lambda i, _: i < 3, lambda i, m: [i + 1, tf.matmul(m, m)], [tf.constant(0), start]
    )
    tf.cond(power[0, 0] > 0, lambda: tf.matmul(start, start), lambda: tf.nn.softmax(start))
    counted = by_type(graph)
    assert (counted["MatMul"], counted["Softmax"]) == (108, 45)


def test_what_has_no_shape_is_not_counted_and_said(
    graph: tf.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    tf.matmul(given(None, 3), given(3, 5))
    assert tf.profiler.profile(graph, options=OPERATIONS).total_float_ops == 0
    assert "1 ops are not counted" in capsys.readouterr().err


def test_the_default_is_the_parameters_of_the_default_graph(
    graph: tf.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    conv_net()
    assert tf.profiler.profile().total_parameters == 309
    assert "fc/w (32x5, 160/160 params)" in capsys.readouterr().out


def test_variables_of_both_kinds_and_of_lists_count(graph: tf.Graph) -> None:
    tf.get_variable("a", [3, 4], use_resource=True)
    tf.get_variable("b", [5, 6], partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("c", [])
    assert tf.profiler.profile(graph, options=PARAMETERS).total_parameters == 12 + 30 + 1


def test_types_of_an_op_log_choose_nodes(graph: tf.Graph) -> None:
    conv_net()
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="fc/w", types=["mine"])
    log.log_entries.add(name="conv/w", types=["mine"], float_ops=7)
    options = BUILDER().with_accounted_types(["mine"]).with_empty_output().build()
    found = tf.profiler.profile(graph, op_log=log, options=options)
    assert (found.total_parameters, found.total_float_ops) == (268, 7)


def test_programs_register_statistics_of_their_own(graph: tf.Graph) -> None:
    node = tf.tanh(given(3, 5)).op.node_def
    assert get_stats_for_node_def(graph, node, "profiler test").value is None

    @RegisterStatistics("Tanh", "profiler test")
    def _of_tanh(graph: Any, node: Any) -> OpStats:
        return OpStats("profiler test", 20)

    total = get_stats_for_node_def(graph, node, "profiler test")
    total += get_stats_for_node_def(graph, node, "profiler test")
    assert total.value == 40
    with pytest.raises(KeyError, match="Tanh,profiler test"):
        RegisterStatistics("Tanh", "profiler test")(_of_tanh)
    with pytest.raises(KeyError, match="MatMul,flops"):
        RegisterStatistics("MatMul", "flops")(_of_tanh)
    with pytest.raises(ValueError, match="type flops"):
        total += OpStats("flops", 1)
    with pytest.raises(TypeError, match="comma"):
        RegisterStatistics("a,b", "flops")
