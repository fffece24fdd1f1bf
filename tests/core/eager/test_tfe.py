"""`tf.contrib.eager`: what it has beside operations that run as they are made."""

import gc
import os
import subprocess
import sys
import textwrap
import warnings
import weakref

import numpy as np
import pytest

import opdock as tf

tfe = tf.contrib.eager


def test_layers_share_variables_by_a_store():
    store = tfe.EagerVariableStore()
    x = tf.ones([2, 3])
    with store.as_default():
        first = tf.layers.dense(x, 4, name="l")
        again = tf.layers.dense(x, 4, name="l")
    assert np.array_equal(first.numpy(), again.numpy())
    assert [v.name for v in store.variables()] == ["l/bias:0", "l/kernel:0"]
    alone = tf.layers.dense(x, 4, name="l")
    assert not np.array_equal(first.numpy(), alone.numpy())
    with store.as_default():
        count = tf.get_variable("count", [], trainable=False)
    assert store.non_trainable_variables() == [count]
    assert len(store.trainable_variables()) == 2


def test_a_copy_of_a_store_has_variables_of_its_own():
    store = tfe.EagerVariableStore()
    with store.as_default():
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    copied = store.copy()
    v.assign(5.0)
    (other,) = copied.variables()
    assert (other.name, other.numpy()) == ("v:0", 1.0)
    with copied.as_default():
        assert tf.get_variable("v", []) is other


def test_variables_of_a_store_are_in_collections():
    """As Sonnet finds those of its modules; those that no store keeps are in none."""
    tf.get_variable("alone", [])
    with tfe.EagerVariableStore().as_default():
        v = tf.get_variable("v", [])
        fixed = tf.get_variable("fixed", [], trainable=False)
        mine = tf.get_variable("mine", [], collections=["of_mine"])
        assert tf.get_variable("v", []) is v
    assert tf.global_variables() == [v, fixed]
    assert tf.get_collection("of_mine") == [mine]
    assert tf.trainable_variables() == [v, mine]


def test_the_store_of_a_template_is_found_by_its_name():
    """Sonnet opens it for variables that modules make before they are called."""
    made = tf.make_template("t", lambda: tf.get_variable("w", []), create_scope_now_=True)
    with made._template_store.as_default(), tf.variable_scope(made.variable_scope):
        b = tf.get_variable("b", [])
    w = made()
    assert tf.trainable_variables() == made.variables == [b, w]


def test_a_store_lets_its_variables_go():
    store = tfe.EagerVariableStore()
    with store.as_default():
        held = weakref.ref(tf.get_variable("v", [2]))
    gc.collect()
    assert held() is not None
    del store
    for name in tf.get_default_graph().collections:
        tf.get_default_graph().clear_collection(name)
    tf.constant(0)
    gc.collect()
    assert held() is None


def test_reuse_asks_for_a_store():
    from opdock.graph.variables.variable_scope import variable_store

    with pytest.raises(RuntimeError, match="EagerVariableStore is active"):
        variable_store().get_variable("x", [1], reuse=True)
    with pytest.raises(ValueError, match="does not hold eager variables"):
        tfe.EagerVariableStore(variable_store())


def test_a_saver_needs_no_session(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    saver = tfe.Saver([v])
    path = saver.save(str(tmp_path / "model"), global_step=7)
    assert path == str(tmp_path / "model-7")
    v.assign([0.0, 0.0])
    saver.restore(path)
    assert v.numpy().tolist() == [1.0, 2.0]
    twice = tfe.Saver([v, v])
    assert twice.save(str(tmp_path / "twice")) == str(tmp_path / "twice")
    with pytest.raises(ValueError, match="the same name: "):
        tfe.Saver([v, tf.Variable([3.0], name="v")])
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="eager execution"):
        tfe.Saver([v])


def test_variables_begin_with_values_of_a_checkpoint(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    path = tfe.Saver([v]).save(str(tmp_path / "model"))
    with tfe.restore_variables_on_create(path):
        a = tf.Variable([0.0, 0.0], name="v")
        b = tf.Variable([0.0, 0.0], name="v")
        with pytest.raises(tf.errors.NotFoundError, match="w not found in checkpoint"):
            tf.Variable([0.0], name="w")
    assert a.numpy().tolist() == [1.0, 2.0] and b.numpy().tolist() == [0.0, 0.0]
    with tfe.restore_variables_on_create(path, lambda name: name.replace("w", "v")):
        c, d = tf.get_variable("w", [2]), tfe.Variable([0.0, 0.0], name="w")
    assert c.numpy().tolist() == [1.0, 2.0] and d.numpy().tolist() == [0.0, 0.0]
    with tfe.restore_variables_on_create(None):
        assert tf.Variable(3.0, name="other").numpy() == 3.0


def test_the_variables_of_an_optimizer():
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    v = tf.Variable(1.0)
    assert tfe.get_optimizer_variables(optimizer) == []
    optimizer.minimize(lambda: v * v)
    assert len(tfe.get_optimizer_variables(optimizer)) == 1


def test_callbacks_are_told_of_each_operation():
    seen = []

    def tell(op_type, inputs, attrs, outputs, name):
        seen.append((op_type, [i.numpy() for i in inputs], [o.numpy() for o in outputs]))
        tf.constant(1) + 1  # of what these run nobody is told

    tfe.add_execution_callback(tell)
    tf.constant(2) * tf.constant(3)
    tfe.clear_execution_callbacks()
    tf.constant(4)
    assert seen[-1] == ("Mul", [2, 3], [6]) and [s[0] for s in seen] == ["Const", "Const", "Mul"]


def test_results_that_are_not_finite():
    one, zero = tf.constant(1.0), tf.constant(0.0)
    assert tfe.seterr() == {"inf_or_nan": "ignore"}
    with tfe.errstate(inf_or_nan=tfe.ExecutionCallback.RAISE):
        with pytest.raises(Exception, match=r"'RealDiv'.* 1 inf\(s\) and 0 nan\(s\)"):
            one / zero
        one / one
    with tfe.errstate(inf_or_nan="warn"), pytest.warns(UserWarning, match=r"1 nan\(s\)"):
        zero / zero
    assert tfe.seterr() == {"inf_or_nan": "ignore"}
    tfe.add_execution_callback(tfe.nan_callback)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one / zero
        with pytest.raises(UserWarning):
            zero / zero
    tfe.clear_execution_callbacks()
    with pytest.raises(ValueError, match="Invalid action"):
        tfe.seterr(inf_or_nan="shout")


def test_a_program_is_run():
    program = """
        import opdock as tf
        tf.flags.DEFINE_integer("n", 2, "n")
        def main(argv):
            print(argv[1:], tf.executing_eagerly(), (tf.constant(tf.flags.FLAGS.n) + 1).numpy())
        tf.contrib.eager.run(main, ["program", "--n=4", "rest"])
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.stdout == "['rest'] True 5\n", done.stderr


def test_devices_are_named():
    assert any(name.endswith("device:CPU:0") for name in tfe.list_devices())
    tfe.async_clear_error()


class Net(tfe.Network):
    def __init__(self):
        super().__init__()
        self.hidden = self.track_layer(tf.layers.Dense(4, activation=tf.nn.relu))
        self.out = self.track_layer(tf.layers.Dense(1))

    def call(self, x):
        return self.out(self.hidden(x))


def test_a_network_has_the_variables_of_its_layers():
    net = Net()
    x = tf.constant([[1.0, 2.0]])

    def loss():
        return tf.reduce_mean(tf.square(net(x) - 3.0))

    before = loss().numpy()
    assert len(net.trainable_variables) == len(net.variables) == 4
    assert net.get_layer(index=1) is net.out and net.get_layer(net.hidden.name) is net.hidden
    optimizer = tf.train.GradientDescentOptimizer(0.001)
    for _ in range(5):
        optimizer.apply_gradients(tfe.implicit_gradients(loss)())
    assert loss().numpy() < before
    with pytest.raises(TypeError, match="not a tf.layers.Layer"):
        net.track_layer(3)
    with pytest.raises(ValueError, match="No such layer"):
        net.get_layer("other")
    net.trainable = False
    assert net.trainable_variables == [] and len(net.non_trainable_variables) == 4


def test_layers_follow_each_other():
    asks = tfe.Sequential([tf.sign, lambda x, training=None: x if training is None else -x])
    assert [asks(tf.constant(2.0), training=t).numpy() for t in (None, True)] == [1, -1]
    net = tfe.Sequential([tf.layers.Dense(4), tf.nn.relu])
    net.add(tf.layers.Dropout(0.5))
    x = tf.ones([2, 3])
    plain = net(x, training=False).numpy()
    assert np.array_equal(plain, tf.nn.relu(net.layers[0](x)).numpy())
    assert (net(x, training=True).numpy() != plain).any() or not plain.any()
    with pytest.raises(TypeError, match="takes only"):
        net.add(3)


def test_one_tensor_for_two_arguments_has_a_gradient_for_each():
    x = tf.constant(3.0)
    first, second = tfe.gradients_function(lambda a, b: a * a * b)(x, x)
    assert (first.numpy(), second.numpy()) == (18.0, 9.0)
    row = [[1.0, 2.0]]
    first, second = tfe.gradients_function(lambda a, b: a * b)(row, row)
    assert first.numpy().tolist() == second.numpy().tolist() == row


def test_arguments_that_are_not_differentiated_for_stay_what_they_are():
    seen = []

    def scaled(x, *how):
        seen.append(how)
        return tf.reduce_sum(x) * how[0][1]

    (slope,) = tfe.gradients_function(scaled, params=[0])([1.0, 2.0], [1, 3], "same")
    assert slope.numpy().tolist() == [3.0, 3.0] and seen == [([1, 3], "same")]
