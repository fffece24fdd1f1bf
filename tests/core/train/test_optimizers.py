"""Every optimizer against a NumPy model over several steps: dense and sparse, both flavours."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

START = np.array([[1.0, -2.0], [3.0, 0.5], [-0.25, 4.0]])
DENSE = [np.array([[0.5, -1.0], [0.1, 0.2], [0.0, 3.0]]) * k for k in (1, -0.5, 2, 0.25)]
# The index 2 twice: its two rows count as one gradient, their sum.
ROWS = np.array([2, 0, 2])
SPARSE = [np.array([[1.0, 2.0], [-0.5, 0.25], [0.5, -1.0]]) * k for k in (1, 0.5, -2, 1.5)]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


# ---------------------------------------------------------------- models: (w, state, g, t) -> w
def sgd(w, s, g, t):
    return w - 0.1 * g


def momentum(w, s, g, t, nesterov=False):
    s["a"] = s.get("a", 0) * 0.9 + g
    return w - 0.1 * (g + 0.9 * s["a"] if nesterov else s["a"])


def adagrad(w, s, g, t):
    s["a"] = s.get("a", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(s["a"])


def adadelta(w, s, g, t):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g * g
    step = np.sqrt(s.get("u", 0) + 1e-2) / np.sqrt(s["a"] + 1e-2) * g
    s["u"] = 0.95 * s.get("u", 0) + 0.05 * step * step
    return w - 0.5 * step


def adam(w, s, g, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return w - rate * s["m"] / (np.sqrt(s["v"]) + 1e-8)


def rmsprop(w, s, g, t):
    s["r"] = 0.9 * s.get("r", 1.0) + 0.1 * g * g
    s["m"] = 0.5 * s.get("m", 0) + 0.1 * g / np.sqrt(s["r"] + 1e-10)
    return w - s["m"]


def centered(w, s, g, t):
    s["g"] = 0.9 * s.get("g", 0) + 0.1 * g
    s["r"] = 0.9 * s.get("r", 1.0) + 0.1 * g * g
    s["m"] = 0.5 * s.get("m", 0) + 0.1 * g / np.sqrt(s["r"] - s["g"] ** 2 + 1e-10)
    return w - s["m"]


def ftrl(w, s, g, t, l1=0.05, l2=0.1):
    a = s.get("a", 0.1)
    new = a + g * g
    s["l"] = s.get("l", 0) + g - (new**0.5 - a**0.5) / 0.1 * w
    s["a"] = new
    quad = new**0.5 / 0.1 + 2 * l2
    return np.where(np.abs(s["l"]) > l1, (np.sign(s["l"]) * l1 - s["l"]) / quad, 0.0)


def shrink(moved, rate, l1, l2):
    return np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, 0) / (1 + rate * l2)


def proximal(w, s, g, t):
    return shrink(w - 0.1 * g, 0.1, 0.05, 0.1)


def proximal_adagrad(w, s, g, t):
    s["a"] = s.get("a", 0.1) + g * g
    rate = 0.1 / np.sqrt(s["a"])
    return shrink(w - rate * g, rate, 0.05, 0.1)


def adagrad_da(w, s, g, t):
    s["g"] = s.get("g", 0) + g
    s["a"] = s.get("a", 0.1) + g * g
    return -0.1 * s["g"] / np.sqrt(s["a"])


T = tf.train
CASES = {
    "sgd": (lambda: T.GradientDescentOptimizer(0.1), sgd),
    "momentum": (lambda: T.MomentumOptimizer(0.1, 0.9), momentum),
    "nesterov": (lambda: T.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
                 lambda *a: momentum(*a, nesterov=True)),
    "adagrad": (lambda: T.AdagradOptimizer(0.1), adagrad),
    "adadelta": (lambda: T.AdadeltaOptimizer(0.5, epsilon=1e-2), adadelta),
    "adam": (lambda: T.AdamOptimizer(0.1), adam),
    "rmsprop": (lambda: T.RMSPropOptimizer(0.1, momentum=0.5), rmsprop),
    "centered": (lambda: T.RMSPropOptimizer(0.1, momentum=0.5, centered=True), centered),
    "ftrl": (lambda: T.FtrlOptimizer(0.1, l1_regularization_strength=0.05,
                                     l2_regularization_strength=0.1), ftrl),
    "proximal": (lambda: T.ProximalGradientDescentOptimizer(0.1, 0.05, 0.1), proximal),
    "proximal_adagrad": (lambda: T.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=0.05, l2_regularization_strength=0.1), proximal_adagrad),
}  # fmt: skip


def make_step(optimizer, var, grad, global_step=None):
    return optimizer.apply_gradients([(grad, var)], global_step)


def model_of(rule, gradients):
    w, state = START.copy(), {}
    for t, g in enumerate(gradients, 1):
        w = rule(w, state, g, t)
    return w


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", CASES)
def test_dense(name, dtype, resource):
    build, rule = CASES[name]
    var = tf.Variable(START, dtype=dtype, use_resource=resource)
    grad = tf.placeholder(dtype, [3, 2])
    step = make_step(build(), var, grad)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in DENSE:
            session.run(step, {grad: g})
        got = session.run(var)
    # Hyperparameters are 32-bit tensors, as in TF, whatever the variable's type.
    tolerance = 2e-5 if dtype is tf.float32 else 2e-6
    np.testing.assert_allclose(got, model_of(rule, DENSE), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", CASES)
def test_sparse(name, resource):
    """Rows with a gradient move as a dense variable of those rows would; the others stay.

    Adam alone moves all rows: its moments decay everywhere.
    """
    build, rule = CASES[name]
    var = tf.Variable(START, dtype=tf.float64, use_resource=resource)
    values = tf.placeholder(tf.float64, [3, 2])
    step = make_step(build(), var, tf.IndexedSlices(values, tf.constant(ROWS), tf.constant([3, 2])))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in SPARSE:
            session.run(step, {values: g})
        got = session.run(var)
    dense = [np.zeros((3, 2)) for _ in SPARSE]
    for d, g in zip(dense, SPARSE, strict=True):
        np.add.at(d, ROWS, g)
    want = model_of(rule, dense)
    if name != "adam":
        want[1] = START[1]
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_adagrad_da(resource):
    var = tf.Variable(START, dtype=tf.float64, use_resource=resource)
    counter = tf.Variable(0, dtype=tf.int64, trainable=False)
    grad = tf.placeholder(tf.float64, [3, 2])
    optimizer = T.AdagradDAOptimizer(0.1, counter)
    step = make_step(optimizer, var, grad, counter)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in DENSE:
            session.run(step, {grad: g})
        assert session.run(counter) == 4
        np.testing.assert_allclose(session.run(var), model_of(adagrad_da, DENSE), rtol=1e-6)


# ---------------------------------------------------------------- names
SLOTS = {
    "momentum": (["w/Momentum"], ["momentum"], "Momentum"),
    "adagrad": (["w/Adagrad"], ["accumulator"], "Adagrad"),
    "adadelta": (["w/Adadelta", "w/Adadelta_1"], ["accum", "accum_update"], "Adadelta"),
    "adam": (["beta1_power", "beta2_power", "w/Adam", "w/Adam_1"], ["m", "v"], "Adam"),
    "rmsprop": (["w/RMSProp", "w/RMSProp_1"], ["momentum", "rms"], "RMSProp"),
    "centered": (["w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"], ["mg", "momentum", "rms"], "RMSProp"),
    "ftrl": (["w/Ftrl", "w/Ftrl_1"], ["accum", "linear"], "Ftrl"),
    "sgd": ([], [], "GradientDescent"),
}


@pytest.mark.parametrize("name", SLOTS)
def test_slots_and_operations_have_tensorflows_names(name, graph):
    made, slots, op_name = SLOTS[name]
    w = tf.Variable([1.0], name="w")
    optimizer = CASES[name][0]()
    step = optimizer.minimize(tf.reduce_sum(w * w))
    assert sorted(v.op.name for v in tf.global_variables()) == sorted([*made, "w"])
    assert optimizer.get_slot_names() == slots
    assert all(optimizer.get_slot(w, s) in tf.global_variables() for s in slots)
    assert optimizer.get_slot(w, "nothing") is None
    assert step.name == op_name
    assert optimizer.get_name() == op_name
    assert sorted(v.op.name for v in optimizer.variables()) == sorted(made)
    assert not set(optimizer.variables()) & set(tf.trainable_variables())
    assert f"{op_name}/update_w" in {o.name.rsplit("/", 1)[0] for o in graph.get_operations()}
    assert step in tf.get_collection(tf.GraphKeys.TRAIN_OP)


def test_slots_lie_in_the_scope_of_the_variable():
    with tf.variable_scope("net"):
        w = tf.get_variable("w", [1])
    T.AdamOptimizer().minimize(tf.reduce_sum(w * w))
    assert {v.op.name for v in tf.global_variables()} == {
        "net/w", "net/w/Adam", "net/w/Adam_1", "beta1_power", "beta2_power",
    }  # fmt: skip


# ---------------------------------------------------------------- minimize and friends
def test_minimize_counts_steps():
    w = tf.Variable(4.0)
    counter = tf.train.get_or_create_global_step()
    step = T.GradientDescentOptimizer(0.25).minimize(w * w, global_step=counter)
    assert step.type == "AssignAdd"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for k in (1, 2, 3):
            session.run(step)
            assert session.run([counter, w]) == [k, 4 / 2**k]


def test_the_learning_rate_may_be_a_tensor_or_a_function():
    for rate in (tf.placeholder_with_default(0.25, []), lambda: 0.25, tf.constant(0.25)):
        w = tf.Variable(4.0)
        step = T.GradientDescentOptimizer(rate).minimize(w * w, var_list=[w])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            assert session.run(w) == 2


def test_var_list_and_grad_loss():
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    pairs = T.GradientDescentOptimizer(1.0).compute_gradients(
        a * b, var_list=[b], grad_loss=tf.constant(5.0)
    )
    assert [v for _, v in pairs] == [b]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(pairs[0][0]) == 5


def test_clipped_gradients():
    w = tf.Variable([3.0, 4.0])
    optimizer = T.GradientDescentOptimizer(1.0)
    grads, variables = zip(*optimizer.compute_gradients(tf.reduce_sum(w * w) / 2), strict=True)
    clipped, norm = tf.clip_by_global_norm(grads, 1.0)
    step = optimizer.apply_gradients(zip(clipped, variables, strict=True))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(norm) == 5
        session.run(step)
        np.testing.assert_allclose(session.run(w), [2.4, 3.2], rtol=1e-6)


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_gates(gate):
    w = tf.Variable(4.0)
    step = T.GradientDescentOptimizer(0.25).minimize(w * w, gate_gradients=gate)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(w) == 2


def test_constraints():
    w = tf.Variable([1.0, -1.0], constraint=lambda v: tf.clip_by_value(v, -1.0, 0.5))
    step = T.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(w).tolist() == [0, -1]


def test_errors():
    optimizer = T.GradientDescentOptimizer(1.0)
    with pytest.raises(ValueError, match="No variables to optimize"):
        optimizer.minimize(tf.constant(1.0))
    w, n = tf.Variable(1.0), tf.Variable(1)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.minimize(tf.constant(1.0))
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, w)])
    with pytest.raises(TypeError, match="not a tf.Variable"):
        optimizer.compute_gradients(w * w, var_list=[3])
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(w * w, gate_gradients=7)
    with pytest.raises(TypeError, match="convertible to a Tensor"):
        optimizer.apply_gradients([(object(), w)])
    with pytest.raises(ValueError):
        tf.train.Optimizer(False, name="")
    assert n


def test_variables_without_gradient_are_left_alone():
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    step = T.AdamOptimizer(0.1).minimize(a * a)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(b) == 1
        assert session.run(a) < 1
    assert not [v for v in tf.global_variables() if v.op.name.startswith(b.op.name + "/")]


def test_embedding_training_touches_only_its_rows():
    table = tf.Variable(np.ones((5, 2), np.float32))
    ids = tf.placeholder(tf.int32, [None])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2.0)
    step = T.AdagradOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step, {ids: [1, 3, 1]})
        got = session.run(table)
    assert (got[[0, 2, 4]] == 1).all()
    assert (got[[1, 3]] < 1).all()


def test_an_optimizer_of_the_user():
    class Sign(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Sign")

        def _create_slots(self, var_list):
            for v in var_list:
                self._zeros_slot(v, "count", self._name)

        def _apply_dense(self, grad, var):
            count = self.get_slot(var, "count")
            return tf.group(tf.assign_sub(var, tf.sign(grad)), tf.assign_add(count, grad * 0 + 1))

    w = tf.Variable([5.0, -5.0], name="w")
    optimizer = Sign()
    step = optimizer.minimize(tf.reduce_sum(w * w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        assert session.run(w).tolist() == [2, -2]
        assert session.run(optimizer.get_slot(w, "count")).tolist() == [3, 3]


@pytest.mark.parametrize("use_resource", [False, True])
def test_minimize_inside_a_branch(use_resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=3.0, use_resource=use_resource)
        loss, wanted = v * v, tf.placeholder(tf.bool, [])
        optimizer = tf.train.AdamOptimizer(0.1)
        step = tf.cond(wanted, lambda: optimizer.minimize(loss), tf.no_op)
        assert [x.op.name for x in tf.global_variables()] == [
            "v", "cond/beta1_power", "cond/beta2_power", "v/Adam", "v/Adam_1"
        ]  # fmt: skip
        assert len(optimizer.variables()) == 4
        sess.run(tf.global_variables_initializer())
        sess.run(step, {wanted: False})
        assert sess.run(v) == 3
        sess.run(step, {wanted: True})
        assert sess.run(v) == pytest.approx(2.9)


def test_a_subclass_takes_the_arguments_of_minimize_by_name() -> None:
    class Halving(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, var_list, **kwargs):
            pairs = super().compute_gradients(loss, var_list, **kwargs)
            return [(g / 2.0, v) for g, v in pairs]

        def apply_gradients(self, pairs, **kwargs):
            assert sorted(kwargs) == ["global_step", "name"]
            return super().apply_gradients(pairs, **kwargs)

    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(3.0)
        step = Halving(1.0).minimize(v * v, var_list=[v])
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        assert sess.run(v) == 0.0
