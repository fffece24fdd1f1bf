"""Pattern fusion: what matches, what may not be fused, and that nothing but speed changes."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock import errors
from opdock.compiler.fuse import patterns
from opdock.plugin import FusionPattern, P
from opdock.plugins.patterns import Fusions
from tests.core.compiler import melder

X = np.array([[-1.5, 0.25, 3.0], [0.5, -0.0, 1e3]], np.float32)
ONLY_PATTERNS = "cluster"


@pytest.fixture(autouse=True)
def on_melder(meld, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", ONLY_PATTERNS)
    with tf.device(meld):
        yield


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2, 3], name="x")


def explained(fetches, feeds):
    with tf.Session() as session:
        return session.explain(fetches, feeds)


def missed(explanation):
    return {r.node: r.missed for r in explanation.rows if r.missed}


def both(fetches, feeds, monkeypatch, config=None):
    """The values fused, checked against those without any pass; then what was fused."""
    with tf.Session(config=config) as session:
        explanation = session.explain(fetches, feeds)
        fused = session.run(fetches, feeds)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    with tf.Session(config=config) as session:
        assert not session.explain(fetches, feeds).fusions()
        plain = session.run(fetches, feeds)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", ONLY_PATTERNS)
    many = isinstance(fetches, list)
    for a, b in zip(fused if many else [fused], plain if many else [plain], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return explanation.fusions()


def test_a_device_is_asked_for_patterns_of_what_is_on_it(x, monkeypatch):
    """Others' are modules that the program has no use for."""
    asked, among = [], Fusions.among
    monkeypatch.setattr(Fusions, "among", lambda self, ops: asked.append(ops) or among(self, ops))
    with tf.device("/cpu:0"):
        product = tf.matmul(x, tf.placeholder(tf.float32, [3, 3], name="w"))
    with tf.Session() as session:
        session.run(tf.nn.relu(product), {x: X, "w:0": np.eye(3)})
    assert {"MatMul", "Relu"} <= set().union(*asked)
    assert not any({"MatMul", "Relu"} <= ops for ops in asked)


# ---------------------------------------------------------------- what matches
def test_a_pattern_becomes_one_node(x, monkeypatch):
    y = tf.nn.relu(tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0])), name="out")
    assert both(y, {x: X}, monkeypatch) == {"bias_relu": 1}
    found = explained(y, {x: X})
    fused = next(r for r in found.rows if r.op == "meld>BiasRelu")
    assert (fused.node, fused.members) == ("out", ("BiasAdd", "out"))
    assert fused.line.rpartition(":")[0].endswith("test_fuse.py")
    parts = {r.node: r for r in found.rows if r.how == "fused"}
    assert {r.into for r in parts.values()} == {"meld>BiasRelu"}
    assert set(parts) == {"BiasAdd", "out"}
    assert "2 ops fused into 1 (1 bias_relu)" in found.summary()
    assert found.to_dict()["fusions"] == {"bias_relu": 1}


@pytest.mark.parametrize("flip", [False, True])
def test_both_orders_of_a_commutative_op_and_one_capture_twice(x, flip, monkeypatch):
    s = tf.sigmoid(x)
    y = s * x if flip else x * s
    assert both(y, {x: X}, monkeypatch) == {"swish": 1}


def test_the_same_name_is_the_same_tensor(x, monkeypatch):
    other = tf.placeholder(tf.float32, [2, 3])
    assert both(x * tf.sigmoid(other), {x: X, other: X + 1}, monkeypatch) == {}


def test_an_order_that_counts_is_kept(x):
    pattern = FusionPattern(name="half", op="m>Half", pattern=P("Sub", "x", P("Sigmoid", "x")))
    assert pattern.captures() == ("x",)
    y = tf.sigmoid(x) - x
    melder.fusions.append(pattern)
    try:
        assert explained(y, {x: X}).fusions() == {}
    finally:
        melder.fusions.remove(pattern)


def test_what_a_pattern_would_compute_is_no_input_of_it(x, monkeypatch):
    pattern = P("AddV2", P("Sigmoid", "x"), "y")
    monkeypatch.setattr(melder, "fusions", [FusionPattern(name="n", op="m>N", pattern=pattern)])
    s = tf.sigmoid(x, name="s")
    found = explained(s + s, {x: X})
    assert found.fusions() == {}
    assert missed(found)["add"] == ("fusion 'n': 's' is used by it as 'y' too",)


def test_a_nested_node_means_the_output_it_names(monkeypatch):
    pattern = P("Neg", P("Split", "axis", "whole", output=1))
    assert "output=1" in repr(pattern)
    monkeypatch.setattr(melder, "fusions", [FusionPattern(name="n", op="m>None", pattern=pattern)])
    whole = tf.placeholder(tf.float32, [2, 4])
    parts = tf.split(whole, 2, axis=1)
    names = [tf.negative(p, name=n) for p, n in zip(parts, ("first", "second"), strict=True)]
    found = missed(explained(names, {whole: np.ones((2, 4))}))
    assert "second" in found and "first" not in found  # tried, and not


def test_higher_benefit_first(x, monkeypatch):
    """The bias goes with the first relu, so the second has no BiasAdd left and takes the sum."""
    inner = tf.nn.relu(tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0])))
    y = tf.nn.relu(inner + x)
    assert both(y, {x: X}, monkeypatch) == {"bias_relu": 1, "add_relu": 1}


def test_attributes_must_be_equal(monkeypatch):
    image = tf.placeholder(tf.float32, [1, 3, 2, 2])
    y = tf.nn.relu(tf.nn.bias_add(image, tf.constant([1.0, 2.0, 3.0]), data_format="NCHW"))
    assert both(y, {image: np.ones((1, 3, 2, 2))}, monkeypatch) == {}


def test_results_from_within(x, monkeypatch):
    """The sum goes to the gradient, as batch statistics do."""
    total = x + 1.0
    y = tf.nn.relu(total)
    assert both([y, total, total * 3.0], {x: X}, monkeypatch) == {"add_relu": 1}


def test_several_roots(x, monkeypatch):
    assert both([tf.reduce_sum(x, 0), x * 2.0], {x: X}, monkeypatch) == {"sum_and_scale": 1}


def test_members_far_apart_are_found_without_a_look_at_what_lies_between(x, monkeypatch):
    """Else a graph built layer by layer would take the square of its width to compile."""
    looked = []
    preceding = patterns._Fuser._preceding
    monkeypatch.setattr(
        patterns._Fuser, "_preceding", lambda f, n: looked.append(n) or preceding(f, n)
    )
    sums = [tf.nn.bias_add(x, tf.constant([float(i), 2.0, 3.0])) for i in range(20)]
    outs = [tf.nn.relu(s) for s in sums]
    assert both(outs, {x: X}, monkeypatch) == {"bias_relu": 20}
    assert not looked


def test_several_roots_in_each_others_way(x, monkeypatch):
    """The product waits for the sum, so one node cannot be both."""
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "dead")
    total = tf.reduce_sum(x, 0)
    with tf.control_dependencies([tf.tanh(total)]):
        scaled = x * 2.0
    found = explained([total, scaled], {x: X})
    assert found.fusions() == {}
    assert "waits for one of them" in missed(found)["Sum"][0]
    assert both([total, scaled], {x: X}, monkeypatch) == {}


def test_a_variable_as_input(x, monkeypatch):
    v = tf.Variable([1.0, 2.0, 3.0])
    y = tf.nn.relu(tf.nn.bias_add(x, v))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.explain(y, {x: X}).fusions() == {"bias_relu": 1}
        np.testing.assert_array_equal(session.run(y, {x: X}), np.maximum(X + [1, 2, 3], 0))
        assert melder.calls == [("meld>BiasRelu", "Relu")]


# ---------------------------------------------------------------- what does not
def test_another_consumer(x):
    biased = tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0]))
    found = explained([tf.nn.relu(biased), tf.tanh(biased, name="other")], {x: X})
    assert found.fusions() == {}
    assert missed(found) == {
        "Relu": ("fusion 'bias_relu': 'BiasAdd' is also used by 'other'",)
    }  # fmt: skip
    assert "not fusion 'bias_relu': 'BiasAdd' is also used by" in found.table(rejections=True)


def test_a_fetched_result(x):
    biased = tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0]))
    found = explained([tf.nn.relu(biased), biased], {x: X})
    assert missed(found)["Relu"] == ("fusion 'bias_relu': 'BiasAdd' is fetched",)


def test_when_declines(x):
    found = explained(tf.nn.relu6(tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0]))), {x: X})
    assert missed(found)["Relu6"] == ("fusion 'bias_relu': only Relu",)


def test_a_when_that_fails_declines(x, monkeypatch):
    broken = FusionPattern(name="broken", op="m>X", pattern=P("Tanh", "x"), when=lambda n: n["no"])
    monkeypatch.setattr(melder, "fusions", [broken])
    found = explained(tf.tanh(x), {x: X})
    assert missed(found)["Tanh"] == ("fusion 'broken': its when() raised KeyError: 'no'",)


def test_the_kernel_declines(x):
    melder.refused["meld>Swish"] = "not today"
    found = explained(x * tf.sigmoid(x), {x: X})
    assert found.fusions() == {}
    assert missed(found)["mul"][0].endswith("melder.swish of plugin 'melder-for-tests': not today")


def test_a_pattern_without_a_kernel(x, monkeypatch):
    monkeypatch.setattr(
        melder, "fusions", [FusionPattern(name="n", op="m>None", pattern=P("Tanh", "x"))]
    )
    assert "no kernel for m>None" in missed(explained(tf.tanh(x), {x: X}))["Tanh"][0]


def test_nodes_of_another_device_stay(x, monkeypatch):
    with tf.device("/cpu:0"):
        biased = tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0]))
    assert both(tf.nn.relu(biased), {x: X}, monkeypatch) == {}


def test_a_label_asks_for_a_kernel_of_its_own(x, graph):
    with graph._kernel_label_map({"Mul": "portable"}):
        y = x * tf.sigmoid(x)
    assert explained(y, {x: X}).fusions() == {}


# ---------------------------------------------------------------- order
def test_controls_move_to_the_fused_node(x):
    v = tf.Variable(0.0)
    bump = tf.assign_add(v, 1.0)
    with tf.control_dependencies([bump]):
        biased = tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0]))
    y = tf.nn.relu(biased)
    with tf.control_dependencies([biased]):
        after = v.read_value() * 10.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.explain([y, after], {x: X}).fusions() == {"bias_relu": 1}
        _, seen = session.run([y, after], {x: X})
        assert seen == 10.0


def test_what_a_member_waits_for_may_not_wait_for_another(x, monkeypatch):
    """relu(add) with an op between them that reads the first and holds up the second."""
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "dead,cluster")
    total = x + 1.0
    between = tf.tanh(total)
    with tf.control_dependencies([between]):
        y = tf.nn.relu(total)
    found = explained([y, between], {x: X})
    assert found.fusions() == {}
    assert "waits for one of them" in missed(found)["Relu"][0]


def test_consumers_made_before_the_outermost_run_after_it(x, monkeypatch):
    total = x + 1.0
    early = total * 3.0  # made before the relu, runs after the fused node
    y = tf.nn.relu(total)
    assert both([early, y], {x: X}, monkeypatch) == {"add_relu": 1}


def test_reads_of_a_variable_see_the_same_writes(x):
    """The bias is added before the variable changes; the relu is made after that."""
    v = tf.Variable([1.0, 1.0, 1.0])
    total = x + v
    with tf.control_dependencies([total]):
        change = tf.assign(v, [100.0, 100.0, 100.0])
    with tf.control_dependencies([change]):
        y = tf.nn.relu(total)
    with tf.Session() as session:
        session.run(v.initializer)
        found = session.explain([y, change.op], {x: X})
        assert found.fusions() == {}
        np.testing.assert_array_equal(session.run([y, change], {x: X})[0], np.maximum(X + 1, 0))


def test_stateful_nodes_are_never_matched(x, monkeypatch):
    monkeypatch.setattr(
        melder, "fusions",
        [FusionPattern(name="r", op="meld>Swish", pattern=P("Neg", P("RandomUniform", "shape")))],
    )  # fmt: skip
    assert explained(-tf.random_uniform([2, 3]), {}).fusions() == {}


# ---------------------------------------------------------------- switches
@pytest.mark.parametrize("name", ["fuse", "swish"])
def test_switched_off_by_name(x, name, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", name)
    assert "swish" not in explained(x * tf.sigmoid(x), {x: X}).fusions()


def test_switched_off_by_the_config(x):
    config = tf.ConfigProto(
        graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=-1))
    )
    with tf.Session(config=config) as session:
        assert session.explain(x * tf.sigmoid(x), {x: X}).fusions() == {}


# ---------------------------------------------------------------- run time
@pytest.mark.parametrize("error", [errors.UnimplementedError, errors.ResourceExhaustedError])
@pytest.mark.parametrize("soft", [False, True])
def test_a_kernel_that_gives_up_hands_back_to_the_members(x, error, soft, monkeypatch):
    y = tf.nn.relu(x + 1.0)
    fetches, feeds = [y, tf.reduce_sum(y, 1)], {x: X}
    melder.decline("meld>AddRelu", error)
    config = tf.ConfigProto(allow_soft_placement=soft)
    with tf.Session(config=config) as session:
        assert session.explain(fetches, feeds).fusions() == {"add_relu": 1}
        for _ in range(3):
            got = session.run(fetches, feeds)
            np.testing.assert_array_equal(got[0], np.maximum(X + 1, 0))
        after = session.explain(fetches, feeds)
        assert after.fusions() == {}
        assert [m.destination for m in after.moves] == [f"its 2 ops on {device()}"]
        assert "melder has had enough" in missed(after)["Relu"][0]
        assert all(r.device == device() for r in after.rows if r.op in ("AddV2", "Relu"))
    assert melder.calls == [("meld>AddRelu", "Relu")]


def test_host_inputs_get_back_to_the_members(x):
    melder.decline("meld>SumAndScale")
    with tf.Session() as session:
        total, scaled = session.run([tf.reduce_sum(x, 0), x * 2.0], {x: X})
    np.testing.assert_allclose(total, X.sum(0))
    np.testing.assert_array_equal(scaled, X * 2)


def test_other_errors_name_the_users_line(x):
    y = tf.nn.relu(x + 1.0, name="here")
    melder.failing["meld>AddRelu"] = ValueError("bad numbers")
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(y, {x: X})
    assert "bad numbers" in caught.value.message
    assert "node here (defined at" in caught.value.message
    assert caught.value.op is y.op


def test_traces_show_the_fused_op(x):
    y = tf.nn.relu(tf.nn.bias_add(x, tf.constant([1.0, 2.0, 3.0])), name="out")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as session:
        session.run(y, {x: X}, options=options, run_metadata=metadata)
    labels = [s.timeline_label for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert any(label.startswith("out = meld>BiasRelu(") for label in labels)
    assert any(n.op == "meld>BiasRelu" for g in metadata.partition_graphs for n in g.node)


def device():
    return f"/job:localhost/replica:0/task:0{melder.DEVICE}"


# ---------------------------------------------------------------- records
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"outputs": (("nobody", 0),)}, "nobody"),
        ({"outputs": (("", -1),)}, "-1"),
        ({"outputs": ()}, "at least one"),
        ({"also": (P("Mul", "y", "z"),)}, "must take one of"),
        ({"op": "Public"}, "private"),
    ],
)
def test_malformed_patterns(fields, text):
    record = {"name": "n", "op": "v>N", "pattern": P("Relu", "x"), **fields}
    with pytest.raises(ValueError, match=text):
        FusionPattern(**record)
