"""`variable_scope` and `get_variable`: names, sharing, defaults, errors."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(what):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(what)


# ---------------------------------------------------------------- get_variable
def test_the_default_is_a_trainable_float_glorot():
    v = tf.get_variable("v", [200, 100])
    assert (v.name, v.dtype.name) == ("v:0", "float32_ref")
    assert v in tf.trainable_variables()
    limit = np.sqrt(6 / 300)
    got = value(v)
    assert 0.9 * limit < np.abs(got).max() <= limit


def test_default_initializers_by_type():
    assert value(tf.get_variable("i", [2], tf.int32)).tolist() == [0, 0]
    assert value(tf.get_variable("b", [2], tf.bool)).tolist() == [False, False]
    assert tf.get_variable("d", [2], tf.float64).dtype.base_dtype is tf.float64
    with pytest.raises(ValueError, match="initializer for variable c"):
        tf.get_variable("c", [2], tf.complex64)


@pytest.mark.parametrize(
    ("initializer", "dtype"),
    [(5, "int32"), (5.0, "float32"), (True, "bool"), ("s", "string"), ([1, 2], "int32"),
     (np.ones(2), "float64"), (np.int64(3), "int64")],
)  # fmt: skip
def test_a_constant_initializer_decides_the_type(initializer, dtype):
    assert tf.get_variable("w", initializer=initializer).dtype.base_dtype.name == dtype


def test_a_tensor_as_initializer():
    v = tf.get_variable("v", initializer=tf.constant([1, 2], tf.int64))
    assert v.dtype.base_dtype is tf.int64
    assert value(v).tolist() == [1, 2]
    w = tf.get_variable("w", initializer=tf.Variable(3.0, name="x").initialized_value())
    assert w.shape.as_list() == []


def test_constant_and_type_that_do_not_match():
    with pytest.raises(ValueError, match="don't match"):
        tf.get_variable("w", initializer=tf.constant([1]), dtype=tf.float32)
    with pytest.raises(ValueError, match="don't match"):
        tf.get_variable("x", initializer=5, dtype=tf.float32)
    assert tf.get_variable("y", initializer=5.0, dtype=tf.float32).dtype.base_dtype is tf.float32


def test_constant_and_shape():
    with pytest.raises(ValueError, match="If initializer is a constant, do not specify shape"):
        tf.get_variable("w", [1], initializer=tf.constant([1.0]))
    with pytest.raises(ValueError, match="do not specify shape"):
        tf.get_variable("w", [1], initializer=[1.0])


@pytest.mark.parametrize(
    "initializer",
    [tf.ones_initializer(), tf.ones_initializer,
     lambda shape, dtype, partition_info: tf.ones(shape),
     lambda shape, dtype=tf.float32, partition_info=None: tf.ones(shape, dtype),
     lambda shape, **_: tf.ones(shape), tf.constant_initializer(1.0)],
)  # fmt: skip
def test_initializers_of_every_kind(initializer):
    v = tf.get_variable("v", [2], initializer=initializer)
    assert value(v).tolist() == [1, 1]
    assert v.initial_value.op.name.startswith("v/Initializer/")


def test_a_function_without_arguments_needs_no_shape():
    v = tf.get_variable("v", initializer=lambda: tf.ones([3]))
    assert v.shape.as_list() == [3]
    kinds = {False: tf.bool, 1: tf.int32, "text": tf.string}
    for i, (first, dtype) in enumerate(kinds.items()):
        v = tf.get_variable(f"v{i}", initializer=lambda first=first: first)
        assert v.dtype.base_dtype is dtype
        assert value(v) == first or value(v) == str(first).encode()


def test_shapes():
    assert tf.get_variable("a", 3).shape.as_list() == [3]
    assert tf.get_variable("b", ()).shape.as_list() == []
    assert tf.get_variable("c", tf.TensorShape([2, 1])).shape.as_list() == [2, 1]
    assert tf.get_variable("d", [tf.Dimension(2)]).shape.as_list() == [2]
    with pytest.raises(ValueError, match="must be fully defined"):
        tf.get_variable("e", [None, 2])
    with pytest.raises(ValueError):
        tf.get_variable("f")


def test_name_scopes_do_not_count_for_variables_but_for_ops():
    with tf.name_scope("ops"):
        v = tf.get_variable("v", [1])
        y = v + 1
    assert v.name == "v:0"
    assert y.op.name == "ops/add"


def test_variable_is_never_shared_but_counts_on():
    with tf.variable_scope("s"):
        a, b = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="v")
    assert [a.op.name, b.op.name] == ["s/v", "s/v_1"]


# ---------------------------------------------------------------- sharing
def test_reuse():
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [1])
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [1]) is v
        assert tf.get_variable("v") is v
        with pytest.raises(ValueError, match="Variable s/w does not exist, or was not created"):
            tf.get_variable("w", [1])
        with pytest.raises(ValueError, match="specified shape \\(2,\\) and found shape \\(1,\\)"):
            tf.get_variable("v", [2])
        with pytest.raises(ValueError, match="specified dtype"):
            tf.get_variable("v", [1], tf.int32)


def test_existing_without_reuse_names_where_it_was_made():
    tf.get_variable("v", [1])
    with pytest.raises(ValueError, match="Variable v already exists, disallowed") as caught:
        tf.get_variable("v", [1])
    assert "Originally defined at" in str(caught.value)
    assert __file__ in str(caught.value)


def test_auto_reuse():
    def layer():
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            return tf.get_variable("v", [1])

    assert layer() is layer()
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        with tf.variable_scope("deeper"):
            assert tf.get_variable("x", [1]) is tf.get_variable("x", [1])


def test_reuse_variables_and_inheritance():
    with tf.variable_scope("s") as scope:
        v = tf.get_variable("v", [1])
        assert not scope.reuse
        scope.reuse_variables()
        assert tf.get_variable("v") is v
        with tf.variable_scope("inner"):
            assert tf.get_variable_scope().reuse is True
            with pytest.raises(ValueError, match="s/inner/x does not exist"):
                tf.get_variable("x", [1])
    with tf.variable_scope("s"):
        assert not tf.get_variable_scope().reuse


def test_reuse_false_inside_a_reusing_scope_reuses_all_the_same():
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [1])
    with tf.variable_scope("", reuse=True), tf.variable_scope("s", reuse=False):
        assert tf.get_variable("v", [1]) is v


def test_the_root_scope_can_be_set_to_reuse():
    v = tf.get_variable("v", [1])
    tf.get_variable_scope().reuse_variables()
    assert tf.get_variable("v", [1]) is v


# ---------------------------------------------------------------- scope names
def test_scopes_nest():
    with tf.variable_scope("a") as a:
        with tf.variable_scope("b") as b:
            v = tf.get_variable("v", [1])
            y = tf.constant(1)
    assert (a.name, b.name, v.op.name, y.op.name) == ("a", "a/b", "a/b/v", "a/b/Const")
    assert b.original_name_scope == "a/b/"


def test_a_scope_opened_twice_by_name_opens_a_new_op_scope():
    for op_scope in ("s/", "s_1/"):
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE) as scope:
            tf.get_variable("v", [1])
            assert scope.original_name_scope == op_scope
            assert tf.constant(1).op.name == op_scope + "Const"
    assert [v.op.name for v in tf.global_variables()] == ["s/v"]


def test_default_names_are_made_unique():
    seen = []
    for _ in range(3):
        with tf.variable_scope(None, "block") as scope:
            tf.get_variable("v", [1])
            with tf.variable_scope(None, "inner") as inner:
                seen.append((scope.name, inner.name))
    assert seen == [("block", "block/inner"), ("block_1", "block_1/inner"),
                    ("block_2", "block_2/inner")]  # fmt: skip
    with tf.variable_scope("given", "ignored") as scope:
        assert scope.name == "given"


def test_a_default_name_avoids_names_given_before():
    with tf.variable_scope("block"):
        pass
    with tf.variable_scope(None, "block") as scope:
        assert scope.name == "block_1"


def test_counters_of_inner_default_names_start_again():
    names = []
    for _ in range(2):
        with tf.variable_scope("s"):
            with tf.variable_scope(None, "d") as one:
                pass
            with tf.variable_scope(None, "d") as two:
                names.append((one.name, two.name))
    assert names == [("s/d", "s/d_1")] * 2


def test_entering_a_scope_object_again(graph):
    with tf.variable_scope("outer"), tf.variable_scope("s") as scope:
        v = tf.get_variable("v", [1])
    with tf.variable_scope("elsewhere"):
        with tf.variable_scope(scope, reuse=True) as again:
            assert again.name == "outer/s"
            assert tf.get_variable("v", [1]) is v
            y = tf.constant(1)
        assert tf.get_variable_scope().name == "elsewhere"
    assert y.op.name == "elsewhere/s/Const"
    with tf.variable_scope(scope, auxiliary_name_scope=False):
        with tf.name_scope(scope.original_name_scope):
            assert tf.constant(1).op.name == "outer/s/Const"
    with tf.variable_scope(scope):
        assert tf.get_variable("w", [1]).op.name == "outer/s/w"


def test_the_empty_name():
    with tf.variable_scope("a"), tf.variable_scope("") as scope:
        assert scope.name in ("a/", "a")
        v = tf.get_variable("v", [1])
    assert v.op.name in ("a//v", "a/v")
    with tf.variable_scope(""):
        assert tf.get_variable("w", [1]).op.name == "w"


def test_without_auxiliary_name_scope():
    with tf.name_scope("n"), tf.variable_scope("s", auxiliary_name_scope=False):
        assert tf.get_variable("v", [1]).op.name == "s/v"
        assert tf.constant(1).op.name == "n/Const"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: tf.variable_scope(None), TypeError),
        (lambda: tf.variable_scope(3), TypeError),
        (lambda: tf.variable_scope("s", reuse="yes"), ValueError),
        (lambda: tf.variable_scope(None, "d", reuse=True), ValueError),
        (lambda: tf.variable_scope("s", auxiliary_name_scope=1), TypeError),
    ],
)
def test_arguments_that_make_no_sense(make, error):
    with pytest.raises(error):
        with make():
            pass


def test_a_scope_is_left_when_its_body_raises():
    with pytest.raises(RuntimeError), tf.variable_scope("s"):
        raise RuntimeError
    assert tf.get_variable_scope().name == ""


def test_one_context_manager_entered_twice():
    scope = tf.variable_scope("s", reuse=tf.AUTO_REUSE)
    with scope:
        a = tf.get_variable("v", [1])
    with scope:
        assert tf.get_variable("v", [1]) is a


# ---------------------------------------------------------------- defaults
def test_defaults_are_inherited_and_overridden():
    with tf.variable_scope("s", initializer=tf.ones_initializer(), dtype=tf.float64,
                           use_resource=True) as scope:  # fmt: skip
        v = tf.get_variable("v", [1])
        with tf.variable_scope("t", initializer=tf.zeros_initializer()):
            w = tf.get_variable("w", [1])
            x = tf.get_variable("x", [1], initializer=tf.constant_initializer(5), dtype=tf.int32)
    assert value([v, w, x]) == [[1], [0], [5]]
    assert v.dtype is w.dtype is tf.float64
    assert x.dtype is tf.int32
    assert scope.dtype is tf.float64
    assert scope.use_resource
    scope.set_initializer(None)
    scope.set_dtype(tf.float16)
    scope.set_use_resource(False)
    with tf.variable_scope(scope):
        assert tf.get_variable("y", [1]).dtype.name == "float16_ref"


def test_regularizers():
    half = lambda v: 0.5 * tf.reduce_sum(v)
    with tf.variable_scope("s", regularizer=half):
        a = tf.get_variable("a", [2], initializer=tf.ones_initializer())
        tf.get_variable("b", [2], regularizer=tf.no_regularizer)
    with tf.variable_scope("s", reuse=True, regularizer=half):
        tf.get_variable("a")
    tf.get_variable("c", [2], regularizer=lambda v: None)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert len(losses) == 1
    assert losses[0].op.name.startswith("s/a/Regularizer/")
    assert value(losses) == [1]
    assert tf.losses.get_regularization_losses() == losses
    assert a in tf.trainable_variables()


def test_custom_getters_chain_from_the_inside_out():
    seen = []

    def getter(tag):
        def get(getter, name, *args, **kwargs):
            seen.append((tag, name))
            return getter(name, *args, **kwargs)

        return get

    with tf.variable_scope("a", custom_getter=getter("outer")):
        with tf.variable_scope("b", custom_getter=getter("inner")):
            v = tf.get_variable("v", [1])
    assert seen == [("inner", "a/b/v"), ("outer", "a/b/v")]
    assert v.op.name == "a/b/v"


def test_a_custom_getter_may_return_anything():
    def averaged(getter, name, *args, **kwargs):
        return getter(name, *args, **kwargs) * 2.0

    with tf.variable_scope("s", custom_getter=averaged):
        v = tf.get_variable("v", [1], initializer=tf.ones_initializer())
    assert value(v) == [2]
    with pytest.raises(ValueError, match="not callable"):
        tf.get_variable("w", [1], custom_getter=3)


def test_a_custom_getter_may_turn_training_off():
    def frozen(getter, *args, **kwargs):
        kwargs["trainable"] = False
        return getter(*args, **kwargs)

    v = tf.get_variable("v", [1], custom_getter=frozen)
    assert v not in tf.trainable_variables()
    assert v in tf.global_variables()


def test_local_variables():
    v = tf.get_local_variable("v", [1], collections=["mine"])
    assert v in tf.local_variables()
    assert v in tf.get_collection("mine")
    assert v not in tf.global_variables() + tf.trainable_variables()


def test_variable_lists_of_a_scope():
    with tf.variable_scope("s") as scope:
        a = tf.get_variable("a", [1])
        b = tf.get_variable("b", [1], trainable=False)
        c = tf.get_local_variable("c", [1])
    with tf.variable_scope("st"):
        tf.get_variable("a", [1])
    assert scope.trainable_variables() == [a]
    assert scope.global_variables() == [a, b]
    assert scope.local_variables() == [c]
    assert tf.trainable_variables("s/") == [a]
    assert len(tf.trainable_variables("s")) == 2


def test_constraint_and_caching_device():
    clip = lambda v: tf.maximum(v, 0.0)
    with tf.variable_scope("s", constraint=clip, caching_device="/cpu:0"):
        v = tf.get_variable("v", [1])
    assert v.constraint is clip
    assert v.value().device == "/device:CPU:0"


def test_the_device_scope_holds_for_the_initializer_too():
    with tf.device("/cpu:0"):
        v = tf.get_variable("v", [2])
    assert v.device == "/device:CPU:0"


def test_variable_creators_wrap(graph):
    def doubled(next_creator, **kwargs):
        kwargs["name"] = "doubled"
        return next_creator(**kwargs)

    with tf.variable_creator_scope(doubled):
        v = tf.get_variable("v", [1])
    assert v.op.name == "doubled"


def test_scopes_of_two_graphs_do_not_meet():
    v = tf.get_variable("v", [1])
    with tf.variable_scope("s"), tf.Graph().as_default():
        assert tf.get_variable_scope().name == ""
        w = tf.get_variable("v", [1])
    assert w is not v


def test_partitioners():
    parts = tf.get_variable("v", [10, 3], partitioner=tf.fixed_size_partitioner(3),
                            initializer=tf.ones_initializer())  # fmt: skip
    names = [p.op.name for p in parts]
    assert names == ["v/part_0", "v/part_1", "v/part_2"]
    assert [p.shape.as_list() for p in parts] == [[4, 3], [3, 3], [3, 3]]
    assert value(tf.convert_to_tensor(parts)).shape == (10, 3)
    with tf.variable_scope("", reuse=True):
        again = tf.get_variable("v", [10, 3], partitioner=tf.fixed_size_partitioner(3))
        assert list(again) == list(parts)


def test_variables_made_in_branches_are_shared_too():
    def layer():
        return tf.get_variable("w", initializer=2.0) * 3.0

    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        y = tf.cond(tf.constant(True), layer, layer)
        z = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t + layer()), [0, 0.0])[1]
    assert [v.op.name for v in tf.global_variables()] == ["s/w"]
    assert value([y, z]) == [6, 12]


def test_a_custom_getter_may_ask_for_what_is_there_or_not():
    def getter(getter, name, *args, **kwargs):
        assert kwargs["reuse"] in (False, True)
        made = getter(name, *args, **kwargs)
        kwargs["reuse"] = None
        return made, getter(name + "_more", *args, **kwargs)

    with tf.variable_scope("s", custom_getter=getter):
        first = tf.get_variable("v", [2])
    with tf.variable_scope("s", custom_getter=getter, reuse=True):
        again = tf.get_variable("v", [2])
    assert first == again and first[1].op.name == "s/v_more"
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("s"):
        tf.get_variable("v", [2])


def test_no_regularizer_may_be_an_empty_value():
    tf.get_variable("v", [2], regularizer={})
    assert not tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)


def test_a_scope_takes_the_arguments_of_its_store_in_order():
    from opdock.python.ops.variable_scope import _get_default_variable_store as current

    with tf.Graph().as_default(), tf.variable_scope("a", dtype=tf.float64) as scope:
        ones = tf.ones_initializer()
        made = scope.get_variable(current(), "v", [2, 3], tf.int32, ones, trainable=False)
        assert made.op.name == "a/v" and made.dtype.base_dtype == tf.int32 and made.shape == [2, 3]
        assert tf.trainable_variables() == []
        assert scope.get_variable(var_store=current(), name="w", shape=[]).dtype.base_dtype == (
            tf.float64
        )
        with pytest.raises(TypeError, match="multiple values for argument 'shape'"):
            scope.get_variable(current(), "x", [2], shape=[3])
