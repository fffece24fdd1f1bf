"""Random networks, with gradients, variables and controls: any subset of passes gives the same.

The bits are the same where only exact passes differ; a product or convolution that adds up in
another order may differ in the last digits.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.compiler.clean.branches import branches
from opdock.compiler.clean.cse import cse
from opdock.compiler.clean.dead import dead
from opdock.compiler.clean.fold import fold
from opdock.compiler.clean.prune import prune, refine_shapes
from opdock.compiler.pipeline import OPTIONAL, RULES
from opdock.compiler.place.layout import layout
from opdock.compiler.place.placer import place
from opdock.compiler.rules.rewrite import rewrite
from opdock.dtypes import float32
from tests.core.compiler import picky

# All numbers are small multiples of 1/8 as far as exact ops go, so that sums are exact too.
X = (np.random.default_rng(0).integers(-8, 8, (2, 4, 4, 4)) / 8).astype(np.float32)
W = (np.random.default_rng(1).integers(-8, 8, (2, 2, 4, 4)) / 8).astype(np.float32)


def constant(h, n):
    """A constant that broadcasts against `h`: a scalar, a vector, or an image of one row."""
    rng = np.random.default_rng(n)
    shape = [(), (h.shape[-1].value,), (1, *h.shape.as_list()[1:])][n % 3]
    return tf.constant(rng.integers(-8, 8, shape) / 8, tf.float32)


def format_of(n):
    return "NHWC" if n % 2 else "NCHW"


def conv(h, n):
    f = format_of(n)
    filters = W if h.shape[f.index("C")] == 4 else np.ones((1, 1, h.shape[f.index("C")], 4), "f")
    pads = [[0, 0], [1, 0], [0, 1], [0, 0]]
    if n % 3 == 0:
        h = tf.pad(h, pads if f == "NHWC" else [pads[0], pads[3], *pads[1:3]])
        return tf.nn.conv2d(h, filters, [1] * 4, "VALID", data_format=f)
    return tf.nn.conv2d(h, filters, [1] * 4, "SAME", data_format=f)


def pool(h, n):
    f = format_of(n)
    size = [1, 2, 2, 1] if f == "NHWC" else [1, 1, 2, 2]
    kind = tf.nn.max_pool if n % 3 else tf.nn.avg_pool
    return kind(h, size, [1] * 4, "SAME", data_format=f)


def bias(h, n):
    f = format_of(n)
    return tf.nn.bias_add(h, tf.fill([h.shape[f.index("C")].value], 0.25), data_format=f)


def product(h, n):
    flat = tf.reshape(h, [h.shape[0].value, -1])
    left = tf.transpose(flat) if n % 2 else flat
    right = flat if n % 2 else tf.transpose(flat)
    return h + tf.reduce_mean(tf.matmul(left, right)) / 64.0


def variable(h, n):
    v = tf.get_variable(f"v{n % 2}", [], initializer=tf.constant_initializer(0.5),
                        use_resource=bool(n % 2))  # fmt: skip
    return h * v


def controlled(h, n):
    with tf.control_dependencies([tf.exp(h), tf.group(tf.tanh(h))][: 1 + n % 2]):
        return tf.identity(h) - 0.5


def twice(h):
    return tf.negative(tf.negative(h))


def loop(h, n):
    return tf.while_loop(lambda i, h: i < n % 3, lambda i, h: (i + 1, tf.nn.relu(h)), [0, h])[1]


STEPS = [
    conv, conv, pool, bias, product, variable, controlled, loop,
    lambda h, n: tf.nn.relu(h), lambda h, n: twice(h), lambda h, n: h * 1.0,
    lambda h, n: h + constant(h, n), lambda h, n: h * constant(h, n), lambda h, n: h / 4.0,
    lambda h, n: tf.square(-h), lambda h, n: h**2.0 / 8.0,
    lambda h, n: tf.transpose(h, [[0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3]][n % 3]),
    lambda h, n: tf.transpose(tf.transpose(h, [3, 2, 1, 0]), [3, 2, 1, 0]),
    lambda h, n: tf.reshape(tf.reshape(h, [-1]), h.shape),
    lambda h, n: tf.squeeze(tf.expand_dims(h, n % 5), [n % 5]),
    lambda h, n: tf.add_n(tf.split(tf.concat([h, h + 1.0], 1 + n % 3), 2, 1 + n % 3)),
    lambda h, n: h - tf.reduce_max(h, [1 + n % 3], keepdims=True),
    lambda h, n: h + tf.reduce_mean(h, [[1, 2], [2, 3], [1]][n % 3], keepdims=True),
    lambda h, n: tf.cond(tf.constant(n % 2 == 0), lambda: h * 2.0, lambda: tf.exp(h)),
    lambda h, n: tf.cast(tf.cast(h, tf.float64), tf.float32),
    lambda h, n: tf.where(h > 0, h, h * 0.5), lambda h, n: tf.stop_gradient(h) + h,
    lambda h, n: tf.tile(h[:, :1], [1, h.shape[1].value, 1, 1]),
    lambda h, n: tf.slice(h, [0, 0, 0, 0], h.shape), lambda h, n: h[:, ::-1],
]  # fmt: skip

programs = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 11)), min_size=1, max_size=9
)
subsets = st.frozensets(st.sampled_from(OPTIONAL))


def build(program, device):
    """(placeholder, fetches) of a network, its loss and its gradient."""
    with tf.device(device), tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        x = tf.placeholder(tf.float32, X.shape)
        h = x
        for step, n in program:
            h = STEPS[step](h, n)
        return x, [h, tf.gradients(tf.reduce_sum(h * 0.125), x)[0]]


def outcome(program, device, off):
    with pytest.MonkeyPatch.context() as patch, tf.Graph().as_default():
        patch.setenv("OPDOCK_DISABLE_PASSES", ",".join(off))
        x, fetches = build(program, device)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            return session.run([f for f in fetches if f is not None], {x: X})


def check(program, device, off):
    plain = outcome(program, device, OPTIONAL)
    for got, want in zip(outcome(program, device, off), plain, strict=True):
        assert got.shape == want.shape
        # Exponentials of large numbers are infinite, which is no scale.
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * scale)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, subsets)
def test_on_the_cpu(program, off):
    check(program, "/device:CPU:0", off)


@pytest.mark.parametrize("only", [None, "NHWC", "NCHW"])
@pytest.mark.parametrize("prefers", [None, "NCHW", "NHWC"])
def test_on_a_device_with_a_format(only, prefers):
    picky.register()
    picky.use(only=only, prefers=prefers)
    try:

        @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
        @given(programs, subsets)
        def property_(program, off):
            check(program, picky.DEVICE, off)

        property_()
    finally:
        picky.unregister()


# ---------------------------------------------------------------- pass by pass
def shape_of(block):
    """A block in a form that can be compared."""
    place_of = {n: i for i, n in enumerate(block.nodes)}
    return [
        (n.op, n.name, [(place_of[v.node], v.index) for v in n.inputs],
         sorted(place_of[c] for c in n.control), n.out_shapes)
        for n in block.nodes
    ]  # fmt: skip


def passes(session):
    engine = session._engine
    made = {
        "fold": functools.partial(fold, evaluate=engine.evaluate),
        "branches": functools.partial(branches, evaluate=engine.evaluate),
        "dead": dead, "cse": cse,
    }  # fmt: skip
    for name, rules in RULES.items():
        made[name] = functools.partial(rewrite, passes={name: rules})
    made["all rules"] = functools.partial(rewrite, passes=RULES)
    return made


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_a_pass_twice_is_a_pass_once(program):
    with tf.Graph().as_default(), tf.Session() as session:
        x, fetches = build(program, "")
        fetches = [f for f in fetches if f is not None]
        for name, run in passes(session).items():
            block = prune(fetches, [], [(x, float32, X.shape)])
            refine_shapes(block)
            run(block)
            once = shape_of(block)
            run(block)
            assert shape_of(block) == once, name


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, st.sampled_from([("NCHW", None), (None, "NCHW"), ("NHWC", None)]))
def test_layout_twice_is_layout_once(program, formats):
    picky.register()
    picky.use(only=formats[0], prefers=formats[1])
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            x, fetches = build(program, picky.DEVICE)
            block = prune([f for f in fetches if f is not None], [], [(x, float32, X.shape)])
            refine_shapes(block)
            place(block, session._engine.placer)
            layout(block, session._engine.placer)
            once = [(n.op, n.name) for n in block.nodes if n.op != "Const"]
            layout(block, session._engine.placer)
            assert [(n.op, n.name) for n in block.nodes if n.op != "Const"] == once
    finally:
        picky.unregister()


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_cost_is_linear(n, compiled):
    """Each pass looks at a node a bounded number of times, however long the chain."""
    x = tf.placeholder(tf.float32, [4, 4])
    h = x
    for i in range(n // 10):
        h = tf.transpose(tf.transpose(h)) * 1.0
        h = tf.reshape(tf.reshape(twice(h), [16]), [4, 4])
        with tf.control_dependencies([tf.exp(h)]):
            h = tf.identity(tf.square(h)) / 4.0 + float(i)
    with tf.Session() as session:
        block = compiled(session, h, {x: np.zeros((4, 4))}).block
    assert set(block.visits) >= {"fold", "branches", "dead", "rewrite", "cse", "layout"}
    assert all(v <= 3 * n for v in block.visits.values()), block.visits
