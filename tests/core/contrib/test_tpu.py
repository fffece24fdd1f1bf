"""`tf.contrib.tpu` without a TPU."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock import errors

tpu = tf.contrib.tpu


def test_variables_in_bfloat16_are_kept_as_float32() -> None:
    with tf.Graph().as_default(), tpu.bfloat16_scope():
        half = tf.get_variable("half", [2], tf.bfloat16)
        full = tf.get_variable("full", [2], tf.float32)
        assert half.dtype == tf.bfloat16 and full.dtype.base_dtype == tf.float32
        kept = tf.global_variables()
    assert {v.op.name: v.dtype.base_dtype for v in kept} == {
        "half": tf.float32, "full": tf.float32
    }  # fmt: skip


def test_gradients_over_cores_ask_for_cores() -> None:
    with tf.Graph().as_default():
        var = tf.get_variable("v", [2])
        inner = tf.train.GradientDescentOptimizer(0.1)
        optimizer = tpu.CrossShardOptimizer(inner)
        pairs = optimizer.compute_gradients(tf.reduce_sum(var))
        assert pairs[0][1] is var and optimizer.get_slot_names() == []
        with pytest.raises(errors.UnimplementedError, match="without CrossShardOptimizer"):
            optimizer.apply_gradients(pairs)
        with pytest.raises(ValueError, match="Unsupported reduction: none"):
            tpu.CrossShardOptimizer(inner, reduction="none")


def test_a_tpus_own_parts_can_be_imported() -> None:
    root = tf.install_as_tensorflow()
    assert root is not None
    from tensorflow.contrib.tpu.python.tpu import tpu as functions

    with pytest.raises(errors.UnimplementedError, match="there are no TPUs here"):
        functions.shard(lambda: None)


def test_a_computation_for_a_tpu_is_built_for_any_device() -> None:
    from opdock.contrib.tpu_export import rewrite

    with tf.Graph().as_default(), tf.Session() as sess:
        seen = tf.get_local_variable("seen", [], initializer=tf.zeros_initializer())
        sess.run(seen.initializer)
        (twice,) = rewrite(lambda a: (2 * a, seen.assign_add(a).op), [tf.constant(3.0)])
        assert sess.run(twice) == 6 and sess.run(seen) == 3
        done = rewrite(lambda: seen.assign(1.0).op)
        assert isinstance(done, tf.Operation) and sess.run(done) is None and sess.run(seen) == 1
        with pytest.raises(ValueError, match="zero-or more Tensor values followed by"):
            rewrite(lambda: [tf.no_op(), tf.constant(1)])
        with pytest.raises(ValueError, match="infeed_queue feeds a TPU"):
            rewrite(lambda: None, infeed_queue=object())


def test_what_only_tpus_run_says_so_where_contrib_had_it() -> None:
    with pytest.raises(AttributeError, match=r"leaves tf\.tpu\.batch_parallel out: needs a TPU"):
        _ = tpu.batch_parallel
