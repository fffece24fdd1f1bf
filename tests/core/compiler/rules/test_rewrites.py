"""What each rule makes of a graph, and that the result keeps its bits; by pass."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.clean.prune import prune, refine_shapes
from opdock.compiler.pipeline import OPTIONAL, RULES
from opdock.compiler.rules.rewrite import rewrite

SPECIAL = np.array([[0.0, -0.0, 1.5], [np.nan, np.inf, -np.inf]], np.float32)
ONES = np.ones((2, 3), np.float32)
WHOLE = np.array([[0, -1, 7], [2**31 - 1, -(2**31), 3]], np.int32)


def kinds(program):
    return sorted(n.op for n in program.block.nodes if n.op not in ("Const", "_Feed"))


def canonical(array):
    array = np.array(array)
    if array.dtype.kind in "fc":
        array[np.isnan(array)] = np.nan
    return array.dtype, array.shape, array.tobytes()


def twice(x):
    return tf.negative(tf.negative(x))


def stack_axis(x, axis):
    return tf.expand_dims(x, axis)


CASES = [
    # pass, make, ops that are left, feed
    ("simplify", lambda x: x + (-0.0), [], SPECIAL),
    ("simplify", lambda x: x + 0.0, ["AddV2"], SPECIAL),
    ("simplify", lambda x: x - 0.0, [], SPECIAL),
    ("simplify", lambda x: x - (-0.0), ["Sub"], SPECIAL),
    ("simplify", lambda x: x + 0, [], WHOLE),
    ("simplify", lambda x: twice(x), [], SPECIAL),
    ("simplify", lambda x: twice(x), [], WHOLE),
    ("simplify", lambda x: x**1.0, [], SPECIAL),
    ("simplify", lambda x: x - x, ["Sub"], SPECIAL),
    ("simplify", lambda x: tf.log(tf.exp(x)), ["Exp", "Log"], SPECIAL),
    ("simplify", lambda x: tf.abs(tf.abs(x)), ["Abs"], SPECIAL),
    ("simplify", lambda x: tf.nn.relu(tf.nn.relu(x)), ["Relu"], SPECIAL),
    ("simplify", lambda x: tf.add_n([x]), [], SPECIAL),
    ("simplify", lambda x: tf.concat([x], 0), [], SPECIAL),
    ("simplify", lambda x: tf.concat([x, tf.zeros([0, 3])], 0), [], SPECIAL),
    ("simplify", lambda x: tf.concat([x, tf.zeros([1, 3])], 0), ["ConcatV2"], SPECIAL),
    ("simplify", lambda x: tf.split(x, 1)[0], [], SPECIAL),
    ("simplify", lambda x: tf.slice(x, [0, 0], [2, 3]), [], SPECIAL),
    ("simplify", lambda x: tf.slice(x, [0, 0], [2, 2]), ["Slice"], SPECIAL),
    ("simplify", lambda x: tf.tile(x, [1, 1]), [], SPECIAL),
    ("simplify", lambda x: tf.broadcast_to(x, [2, 3]), [], SPECIAL),
    ("simplify", lambda x: tf.broadcast_to(x, [1, 2, 3]), ["BroadcastTo"], SPECIAL),
    ("simplify", lambda x: tf.pad(x, [[0, 0], [0, 0]]), [], SPECIAL),
    ("simplify", lambda x: tf.reverse(x, []), [], SPECIAL),
    ("simplify", lambda x: tf.reverse(x[:1], [0]), ["StridedSlice"], SPECIAL),
    ("simplify", lambda x: tf.where(tf.ones([2, 3], tf.bool), x, -x), [], SPECIAL),
    ("simplify", lambda x: tf.where(tf.zeros([2, 3], tf.bool), x, tf.abs(x)), ["Abs"], SPECIAL),
    ("simplify", lambda x: tf.cast(tf.cast(x, tf.float64), tf.float32), [], SPECIAL),
    ("simplify", lambda x: tf.cast(tf.cast(x, tf.int64), tf.int32), [], WHOLE),
    ("simplify", lambda x: tf.cast(tf.cast(x, tf.float32), tf.int32), ["Cast", "Cast"], WHOLE // 9),
    ("simplify", lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), ["Cast", "Cast"], SPECIAL),
    ("simplify", lambda x: tf.reduce_mean(x, []), [], SPECIAL),
    ("algebra", lambda x: x**2.0, ["Square"], SPECIAL),
    ("algebra", lambda x: x**2, ["Square"], WHOLE),
    ("algebra", lambda x: x**3.0, ["Pow"], SPECIAL),
    ("algebra", lambda x: x / 4.0, ["Mul"], SPECIAL),
    ("algebra", lambda x: x / 3.0, ["RealDiv"], SPECIAL),
    ("algebra", lambda x: x + -tf.square(x), ["Square", "Sub"], SPECIAL),
    ("algebra", lambda x: x - -tf.square(x), ["AddV2", "Square"], SPECIAL),
    ("algebra", lambda x: tf.square(-x), ["Square"], SPECIAL),
    ("algebra", lambda x: tf.where(tf.reduce_all(x < 2, 1), x, tf.exp(x)),
     ["All", "Exp", "Less", "Reshape", "SelectV2"], SPECIAL),
    ("algebra", lambda x: tf.square(tf.abs(x)), ["Square"], WHOLE),
    ("algebra", lambda x: tf.abs(-x), ["Abs"], SPECIAL),
    ("algebra", lambda x: tf.logical_not(tf.equal(x, 0.0)), ["NotEqual"], SPECIAL),
    ("algebra", lambda x: tf.logical_not(x < 0.0), ["Less", "LogicalNot"], SPECIAL),
    ("algebra", lambda x: tf.cast(tf.cast(x, tf.int64), tf.int16), ["Cast"], WHOLE),
    ("algebra", lambda x: tf.cast(tf.cast(x, tf.float64), tf.float16), ["Cast"], SPECIAL),
    ("algebra", lambda x: tf.cast(tf.cast(x, tf.float64), tf.int32), ["Cast", "Cast"], ONES),
    ("algebra", lambda x: tf.reduce_max(tf.reduce_max(x, 0), 0), ["Max"], SPECIAL),
    ("algebra", lambda x: tf.reduce_sum(tf.reduce_sum(x, 1), 0), ["Sum"], WHOLE),
    ("algebra", lambda x: tf.reduce_sum(tf.reduce_sum(x, 1), 0), ["Sum", "Sum"], SPECIAL),
    ("reshapes", lambda x: tf.reshape(tf.reshape(x, [6]), [3, 2]), ["Reshape"], SPECIAL),
    ("reshapes", lambda x: tf.reshape(tf.reshape(x, [6]), [2, 3]), [], SPECIAL),
    ("reshapes", lambda x: tf.squeeze(stack_axis(x, 1), [1]), [], SPECIAL),
    ("reshapes", lambda x: stack_axis(stack_axis(x, 0), 0), ["Reshape"], SPECIAL),
    ("reshapes", lambda x: x[:, None], ["Reshape"], SPECIAL),
    ("reshapes", lambda x: x[:, :], [], SPECIAL),
    ("reshapes", lambda x: x[::-1], ["StridedSlice"], SPECIAL),
    ("reshapes", lambda x: tf.stack([x], 1), ["Reshape"], SPECIAL),
    ("reshapes", lambda x: tf.unstack(x[:1])[0], ["Reshape", "StridedSlice"], SPECIAL),
    ("reshapes", lambda x: tf.transpose(x[:, None], [0, 2, 1]), ["Reshape"], SPECIAL),
    ("transposes", lambda x: tf.transpose(tf.transpose(x)), [], SPECIAL),
    ("transposes", lambda x: tf.transpose(x), ["Transpose"], SPECIAL),
    (
        "transposes",
        lambda x: tf.transpose(tf.transpose(tf.reshape(x, [1, 2, 3]), [1, 2, 0]), [1, 0, 2]),
        ["Reshape", "Transpose"], SPECIAL,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_is_left(case, compiled, monkeypatch):
    name, make, left, feed = CASES[case]
    x = tf.placeholder(feed.dtype, feed.shape)
    y = make(x)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    with tf.Session() as session:
        assert kinds(compiled(session, y, {x: feed})) == left
        got = session.run(y, {x: feed})
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", ",".join(OPTIONAL))
    with tf.Session() as session:
        plain = session.run(y, {x: feed})
        before = kinds(compiled(session, y, {x: feed}))
    assert canonical(got) == canonical(plain)
    others = ",".join(n for n in OPTIONAL if n != name)
    if left != before:
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster," + name)
        with tf.Session() as session:
            without = kinds(compiled(session, y, {x: feed}))
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", others)
        with tf.Session() as session:
            rows = session.explain(y, {x: feed}).rows
        assert without != left or any(r.why.startswith(f"{name}: ") for r in rows)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
@pytest.mark.parametrize("batched", [False, True])
def test_products_take_transposes(dtype, batched, compiled):
    rng = np.random.default_rng(0)
    shape = (2, 3, 4) if batched else (3, 4)
    perm = [0, 2, 1] if batched else [1, 0]
    a = rng.integers(-4, 4, shape).astype(dtype)
    if dtype == np.complex64:
        a = a + 1j * a[..., ::-1]
    x = tf.placeholder(dtype, shape)
    y = tf.matmul(tf.transpose(x, perm), x)
    z = tf.matmul(x, tf.transpose(x, perm), transpose_a=False)
    with tf.Session() as session:
        turned = "Transpose" in kinds(compiled(session, [y, z], {x: a}))
        # The flag of a batched product conjugates, which a transpose does not.
        assert turned == (batched and dtype == np.complex64)
        got = session.run([y, z], {x: a})
    flipped = np.swapaxes(a, -1, -2)
    np.testing.assert_array_equal(got[0], flipped @ a)
    np.testing.assert_array_equal(got[1], a @ flipped)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_padding_goes_into_the_convolution(data_format, compiled, monkeypatch):
    rng = np.random.default_rng(1)
    pads = [[0, 0], [1, 2], [2, 0], [0, 0]]
    shape, spatial = (2, 6, 7, 3), pads
    if data_format == "NCHW":
        shape, spatial = (2, 3, 6, 7), [pads[0], pads[3], pads[1], pads[2]]
    x = tf.placeholder(tf.float32, shape)
    w = tf.placeholder(tf.float32, (3, 3, 3, 4))
    padded = tf.pad(x, spatial)
    y = tf.nn.conv2d(padded, w, [1, 1, 1, 1], "VALID", data_format=data_format)
    fetches = [y, *tf.gradients(y * y, [x, w])]
    feed = {x: rng.normal(size=shape), w: rng.normal(size=(3, 3, 3, 4))}
    with tf.Session() as session:
        assert "Pad" not in kinds(compiled(session, fetches, feed))
        got = session.run(fetches, feed)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "padding")
    with tf.Session() as session:
        assert "Pad" in kinds(compiled(session, fetches, feed))
        for g, w_ in zip(got, session.run(fetches, feed), strict=True):
            np.testing.assert_allclose(g, w_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "pads", [[[0, 0], [1, 1], [1, 1], [1, 0]], [[1, 0], [0, 0], [0, 0], [0, 0]]]
)
def test_padding_of_batch_and_channels_stays(pads, compiled):
    x = tf.placeholder(tf.float32, (2, 6, 7, 3))
    padded = tf.pad(x, pads)
    y = tf.nn.conv2d(padded, tf.ones([3, 3, padded.shape[3], 4]), [1, 1, 1, 1], "VALID")
    with tf.Session() as session:
        assert "Pad" in kinds(compiled(session, y, {x: np.ones((2, 6, 7, 3))}))


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda s: s[1], 3), (lambda s: s[-1], 3), (lambda s: s[1:], [3]), (lambda s: s[0], None),
        (lambda s: s[:2], None),
    ],
)  # fmt: skip
def test_facts_of_a_shape_known_in_part(make, value):
    x = tf.placeholder(tf.float32, [None, 3])
    block = prune([make(tf.shape(x))], [], [(x, tf.float32, (None, 3))])
    refine_shapes(block)
    rewrite(block, {"facts": RULES["facts"]})
    found = block.fetches[0].node.const()
    assert (found is None) if value is None else found.tolist() == value


def test_known_entries_of_an_unknown_shape():
    """Inside a loop a dimension changes; what is known of the shape is a constant all the same."""
    start = tf.constant([[1.0, 2.0, 3.0]])

    def body(i, x):
        return i + 1, tf.concat([x, tf.zeros([1, tf.shape(x)[1]])], 0)

    _, grown = tf.while_loop(
        lambda i, x: i < 3, body, [0, start],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
    )  # fmt: skip
    with tf.Session() as session:
        assert session.run(grown).shape == (4, 3)


# ---------------------------------------------------------------- relaxed
def relaxed_config():
    options = tf.ConfigProto()
    options.graph_options.rewrite_options.arithmetic_optimization = 3
    return options


RELAXED = [
    (lambda x: x**0.5, ["Sqrt"]),
    (lambda x: x**-0.5, ["Rsqrt"]),
    (lambda x: x**3.0, ["Mul", "Square"]),
    (lambda x: x / 3.0, ["Mul"]),
    (lambda x: tf.log(tf.exp(x)), []),
    (lambda x: x - x, []),
    (lambda x: tf.reduce_sum(tf.reduce_sum(x, 1), 0), ["Sum"]),
    (lambda x: tf.reduce_mean(tf.reduce_mean(x, 1), 0), ["Mean"]),
    (lambda x: tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]])) * 2.0, ["MatMul"]),
    (lambda x: tf.matmul(x, tf.ones([3, 2])) * tf.constant([2.0, 3.0]), ["MatMul"]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(RELAXED)))
def test_relaxed_math_is_asked_for(case, compiled, monkeypatch):
    make, left = RELAXED[case]
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    feed = np.random.default_rng(case).uniform(0.5, 2, (2, 3)).astype(np.float32)
    x = tf.placeholder(tf.float32, [2, 3])
    y = make(x)
    with tf.Session() as session:
        assert kinds(compiled(session, y, {x: feed})) != left
        plain = session.run(y, {x: feed})
    with tf.Session(config=relaxed_config()) as session:
        assert kinds(compiled(session, y, {x: feed})) == left
        np.testing.assert_allclose(session.run(y, {x: feed}), plain, rtol=1e-5)
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster,relaxed")
    with tf.Session(config=relaxed_config()) as session:
        assert kinds(compiled(session, y, {x: feed})) != left


def test_a_factor_that_varies_by_row_stays_out_of_the_weights(compiled, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.matmul(x, tf.ones([3, 2])) * tf.constant([[2.0], [3.0]])
    with tf.Session(config=relaxed_config()) as session:
        assert kinds(compiled(session, y, {x: np.ones((2, 3))})) == ["MatMul", "Mul"]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_frozen_batch_norm_goes_into_the_weights(data_format, compiled, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    monkeypatch.setenv("OPDOCK_RELAXED_MATH", "1")
    rng = np.random.default_rng(3)
    shape = (2, 6, 7, 3) if data_format == "NHWC" else (2, 3, 6, 7)
    x = tf.placeholder(tf.float32, shape)
    w = tf.constant(rng.normal(size=(3, 3, 3, 4)), tf.float32)
    h = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=data_format)
    scale, offset, mean, variance = (rng.uniform(0.5, 2, 4).astype(np.float32) for _ in range(4))
    y, moment, _ = tf.nn.fused_batch_norm(
        h, scale, offset, mean, variance, is_training=False, data_format=data_format
    )
    feed = {x: rng.normal(size=shape)}
    with tf.Session() as session:
        assert kinds(compiled(session, y, feed)) == ["BiasAdd", "Conv2D"]
        # Whoever wants more of the normalization than its result gets all of it.
        assert "FusedBatchNorm" in kinds(compiled(session, [y, moment], feed))[1]
        got = session.run(y, feed)
    monkeypatch.setenv("OPDOCK_RELAXED_MATH", "0")
    with tf.Session() as session:
        np.testing.assert_allclose(got, session.run(y, feed), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- what must not change
def test_a_read_of_a_variable_does_not_move():
    v = tf.Variable(1.0, use_resource=False)
    early = v * 1.0
    opposite = twice(v)
    with tf.control_dependencies([early, opposite]):
        write = v.assign(5.0)
    with tf.control_dependencies([write]):
        late = early + opposite
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(late) == 2.0


def test_what_is_dropped_still_runs_if_it_has_an_effect():
    v = tf.Variable(1.0, use_resource=True)
    add = v.assign_add(1.0, read_value=True)
    y = tf.where(True, tf.constant(3.0), tf.identity(add) * 2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 3.0
        assert session.run(v) == 2.0


def test_a_kernel_that_was_asked_for_by_label_stays(compiled):
    x = tf.placeholder(tf.float32, [2])
    y = tf.identity(x) * 1.0
    y.op._set_attr("_kernel", tf.AttrValue(s=b""))
    with tf.Session() as session:
        assert kinds(compiled(session, y, {x: [1.0, 2.0]})) == ["Mul"]


def test_each_rule_belongs_to_a_pass_that_can_be_switched_off():
    assert set(RULES) <= set(OPTIONAL)
    assert all(isinstance(r, tuple) for rules in RULES.values() for r in rules.values())


def test_rewriter_config_switches():
    for field, names in (
        ("constant_folding", {"fold", "branches"}), ("layout_optimizer", {"layout"}),
        ("dependency_optimization", {"dead"}),
    ):  # fmt: skip
        config = tf.ConfigProto()
        setattr(config.graph_options.rewrite_options, field, 2)
        from opdock.compiler.pipeline import disabled_by

        assert disabled_by(config) == names
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    assert disabled_by(config) == set(OPTIONAL) - {"memory", "segments"}


def test_a_constant_exponent_may_be_several_numbers():
    x = tf.placeholder(tf.float32, [2])
    found = [x ** tf.constant([2.0, 2.0]), x ** tf.constant([2.0, 3.0])]
    with tf.Session() as session:
        same, other = session.run(found, {x: [3, 4]})
    assert same.tolist() == [9, 16] and other.tolist() == [9, 64]
