"""Layout: a device gets images in the format that it prefers or has kernels for."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.core.compiler import picky

RNG = np.random.default_rng(7)
SHAPE = (2, 8, 6, 3)
OTHER = {"NHWC": "NCHW", "NCHW": "NHWC"}


@pytest.fixture(autouse=True)
def device():
    picky.register()
    with tf.device(picky.DEVICE):
        yield
    picky.unregister()


def images(x, data_format="NHWC"):
    return x if data_format == "NHWC" else x.transpose(0, 3, 1, 2)


def dims(values, data_format):
    n, h, w, c = values
    return [n, h, w, c] if data_format == "NHWC" else [n, c, h, w]


def weights(*shape):
    return tf.constant(RNG.normal(size=shape), tf.float32)


def ops(program, op="Transpose"):
    return [n for n in program.block.nodes if n.op == op]


def run(make, feed, only=None, prefers=None):
    """(values, program) of the tensors that `make` builds on a placeholder."""
    picky.use(only=only, prefers=prefers)
    with tf.Session() as session:
        program = session._program(make[1], {make[0]: feed})
        return session.run(make[1], {make[0]: feed}), program


def same(made, feed, **settings):
    """The program under the settings, after a look that its results are those without."""
    plain, _ = run(made, feed)
    got, program = run(made, feed, **settings)
    for a, b in zip(got, plain, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)
    return program


def network(data_format="NHWC"):
    """Everything that has a format, and its gradients."""
    f = data_format
    channel = f.index("C")
    x = tf.placeholder(tf.float32, images(np.zeros(SHAPE), f).shape)
    w = weights(3, 3, 3, 4)
    h = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=f)
    h = tf.nn.relu(tf.nn.bias_add(h, weights(4), data_format=f))
    side = tf.nn.depthwise_conv2d(h, weights(3, 3, 4, 1), [1, 1, 1, 1], "SAME", data_format=f)
    h, _, _ = tf.nn.fused_batch_norm(h + side, weights(4), weights(4), data_format=f)
    h = tf.concat([h, tf.nn.relu6(side)], channel)
    h = tf.nn.max_pool(h, dims([1, 2, 2, 1], f), dims([1, 2, 2, 1], f), "SAME", data_format=f)
    a, b = tf.split(h, 2, channel)
    h = a * tf.sigmoid(b)
    h = tf.nn.avg_pool(h, dims([1, 2, 1, 1], f), dims([1, 1, 1, 1], f), "VALID", data_format=f)
    space = [f.index("H"), f.index("W")]
    y = tf.reduce_mean(h, space)
    loss = tf.reduce_sum(y * y)
    return x, [y, *tf.gradients(loss, [x, w])]


@pytest.mark.parametrize("given", ["NHWC", "NCHW"])
@pytest.mark.parametrize("way", ["prefers", "only", "both"])
def test_a_network_and_its_gradients(given, way):
    wanted = OTHER[given]
    settings = {"prefers": wanted} if way == "prefers" else {"only": wanted}
    if way == "both":
        settings = {"prefers": wanted, "only": wanted}
    made = network(given)
    program = same(made, images(RNG.normal(size=SHAPE), given).astype(np.float32), **settings)
    # The gradient of the last pool has no neighbour whose format it could take over.
    alone = {"AvgPoolGrad"} if way == "prefers" else set()
    assert {f for op, f in picky.ran if f is not None and op not in alone} == {wanted}
    # In, out, and where the gradient of the mean comes in.
    assert len(ops(program)) <= 4
    assert all(n.target.device_type == "PICKY" for n in ops(program, "Conv2D"))


def test_without_a_preference_nothing_changes():
    made = network()
    _, program = run(made, RNG.normal(size=SHAPE))
    assert not ops(program)
    _, program = run(made, RNG.normal(size=SHAPE), prefers="NHWC", only="NHWC")
    assert not ops(program)


def test_the_cpu_has_no_preference():
    with tf.device("/device:CPU:0"):
        made = network()
    _, program = run(made, RNG.normal(size=SHAPE), prefers="NCHW")
    assert not ops(program)


def test_what_gains_nothing_stays():
    """A pool alone is not worth two transposes."""
    x = tf.placeholder(tf.float32, SHAPE)
    y = tf.nn.relu(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    assert not ops(same((x, [y]), RNG.normal(size=SHAPE), prefers="NCHW"))


def test_the_switch(monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "layout")
    made = network()
    _, program = run(made, RNG.normal(size=SHAPE), prefers="NCHW")
    assert not ops(program)
    # A device that cannot do without transposes gets them all the same, two an op.
    program = same(made, RNG.normal(size=SHAPE), only="NCHW")
    assert len(ops(program)) >= 10


def test_explain_says_why():
    picky.use(prefers="NCHW")
    x, fetches = network()
    with tf.Session() as session:
        rows = session.explain(fetches, {x: np.zeros(SHAPE)}).rows
    conv = next(r for r in rows if r.op == "Conv2D")
    assert "NCHW, which the device prefers" in conv.why
    assert all(r.why == "between data formats" for r in rows if r.op == "Transpose")


AGNOSTIC = {
    "scalar": lambda h: h * 2.0 + 1.0,
    "vector": lambda h: h * tf.constant([1.0, 2.0, 3.0, 4.0]),
    "fed vector": lambda h: h * tf.abs(weights(4)),
    "matrix": lambda h: h * weights(6, 4),
    "image": lambda h: h + weights(1, 8, 6, 4),
    "row": lambda h: h - weights(2, 1, 1, 1),
    "fed image": lambda h: tf.nn.relu(h) + tf.tanh(weights(*SHAPE[:3], 4)),
    "pad": lambda h: tf.pad(h, [[0, 0], [1, 0], [0, 2], [3, 0]]),
    "mirror": lambda h: tf.pad(h, [[0, 0], [1, 0], [0, 2], [1, 0]], "REFLECT"),
    "concat": lambda h: tf.concat([h, tf.nn.relu(h), weights(*SHAPE[:3], 2)], 3),
    "concat rows": lambda h: tf.concat([h, h * 2.0], -4),
    "split": lambda h: tf.add_n(tf.split(h, 2, 1)),
    "split sizes": lambda h: tf.split(h, [1, 3], -1)[1],
    "slice": lambda h: tf.slice(h, [0, 1, 2, 3], [2, 3, 4, 1]),
    "strided slice": lambda h: h[:, ::2, 1:],
    "tile": lambda h: tf.tile(h, [1, 2, 1, 3]),
    "reverse": lambda h: tf.reverse(h, [1]),
    "mean": lambda h: tf.reduce_mean(h, [1, 2]),
    "mean kept": lambda h: tf.reduce_mean(h, [1, 2], keepdims=True) * h,
    "max of channels": lambda h: tf.reduce_max(h, -1),
    "sum of rows": lambda h: tf.reduce_sum(h, [0, 1]),
    "sum of all": lambda h: tf.reduce_sum(h),
    "squeeze": lambda h: tf.squeeze(tf.reduce_mean(h, [1, 2], keepdims=True), [1, 2]),
    "cast": lambda h: tf.cast(h > 0, tf.float32),
    "where": lambda h: tf.where(h > 0, h, tf.zeros_like(h)),
    "flatten": lambda h: tf.reshape(h, [2, -1]),
    "transpose": lambda h: tf.transpose(h, [0, 3, 1, 2]),
    "softmax": lambda h: tf.nn.softmax(h),
    "bias": lambda h: tf.nn.bias_add(h, weights(4)),
    "depth to space": lambda h: tf.depth_to_space(h, 2),
    "argmax": lambda h: tf.argmax(h, 3),
    "lrn": lambda h: tf.nn.lrn(h),
}


@pytest.mark.parametrize("name", AGNOSTIC)
@pytest.mark.parametrize("way", ["prefers", "only"])
def test_what_passes_on_the_format(name, way):
    x = tf.placeholder(tf.float32, SHAPE)
    h = tf.nn.conv2d(x, weights(3, 3, 3, 4), [1, 1, 1, 1], "SAME")
    y = AGNOSTIC[name](h)
    z = y
    if y.shape.ndims == 4:
        z = tf.nn.conv2d(y, weights(2, 2, y.shape[3].value, 2), [1, 1, 1, 1], "SAME")
    same((x, [z, y, h]), RNG.normal(size=SHAPE), **{way: "NCHW"})
    program = same((x, [z]), RNG.normal(size=SHAPE), **{way: "NCHW"})
    passes = {
        "scalar", "vector", "matrix", "image", "pad", "mirror", "concat rows", "split",
        "split sizes", "slice", "tile", "reverse", "mean kept", "where", "bias", "depth to space",
    }  # fmt: skip
    if name in passes:
        assert len(ops(program)) == 2, name


def test_a_user_s_own_transposes_meet_the_compiler_s():
    x = tf.placeholder(tf.float32, images(np.zeros(SHAPE), "NCHW").shape)
    h = tf.transpose(x, [0, 2, 3, 1])
    h = tf.nn.relu(tf.nn.conv2d(h, weights(3, 3, 3, 4), [1, 1, 1, 1], "SAME"))
    y = tf.transpose(h, [0, 3, 1, 2])
    feed = images(RNG.normal(size=SHAPE), "NCHW")
    assert not ops(same((x, [y]), feed, prefers="NCHW"))
    assert not ops(same((x, [y]), feed, only="NCHW"))


def test_in_a_loop_and_a_branch():
    x = tf.placeholder(tf.float32, SHAPE)
    w = weights(3, 3, 3, 3)

    def body(i, h):
        return i + 1, tf.nn.relu(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME")) / 8.0

    _, h = tf.while_loop(lambda i, h: i < 3, body, [0, x])
    y = tf.cond(tf.reduce_sum(h) > 0, lambda: tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
                lambda: h[:, ::2, ::2])  # fmt: skip
    for settings in ({"prefers": "NCHW"}, {"only": "NCHW"}):
        same((x, [y]), RNG.normal(size=SHAPE), **settings)


def test_training_with_variables():
    def losses(**settings):
        picky.use(**settings)
        with tf.Graph().as_default(), tf.device(picky.DEVICE):
            x = tf.constant(np.random.default_rng(0).normal(size=SHAPE), tf.float32)
            w = tf.Variable(np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype(np.float32))
            b = tf.Variable(tf.zeros([4]))
            h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME"), b))
            loss = tf.reduce_mean(tf.square(tf.reduce_mean(h, [1, 2]) - 1.0))
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return [session.run([loss, step])[0] for _ in range(5)]

    plain = losses()
    np.testing.assert_allclose(losses(prefers="NCHW"), plain, rtol=1e-4)
    np.testing.assert_allclose(losses(only="NCHW"), plain, rtol=1e-4)
    assert plain[-1] < plain[0]
