"""Loss scales, and the wish for mixed precision."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.runtime import mixed_precision
from opdock.train.experimental import loss_scale

experimental = tf.train.experimental


@pytest.fixture(autouse=True)
def graph(monkeypatch):
    monkeypatch.setattr(mixed_precision, "state", mixed_precision.State())
    with tf.Graph().as_default() as g:
        yield g


def test_a_fixed_scale():
    scale = experimental.FixedLossScale(8)
    op, fit = scale.update([])
    assert fit is True
    assert isinstance(op, tf.Operation)
    assert scale.get_config() == {"loss_scale_value": 8.0}
    assert repr(type(scale).from_config(scale.get_config())) == "FixedLossScale(8.0)"
    with tf.Session() as sess:
        assert sess.run(scale()) == 8.0
    for wrong, text in ((0.5, "at least 1"), ("8", "int or float")):
        with pytest.raises(ValueError, match=text):
            experimental.FixedLossScale(wrong)


def test_a_dynamic_scale_grows_and_shrinks():
    scale = experimental.DynamicLossScale(4, increment_period=2, multiplier=2)
    grad = tf.placeholder(tf.float32, [])
    update, fit = scale.update({"a": grad, "b": [None]})
    good, bad, worse = 1.0, np.nan, np.inf
    seen = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value in (good, good, good, bad, good, worse, worse, worse):
            _, finite = sess.run([update, fit], {grad: value})
            assert finite == np.isfinite(value)
            seen.append(float(sess.run(scale())))
    assert seen == [4, 8, 8, 4, 4, 2, 1, 1]
    assert scale.get_config() == {
        "initial_loss_scale": 4.0, "increment_period": 2, "multiplier": 2.0,
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="Duplicate variables"):
        scale._add_weight("good_steps", 0)


def test_a_scale_does_not_become_infinite():
    scale = experimental.DynamicLossScale(2.0**127, increment_period=1)
    update, _ = scale.update([tf.constant(1.0)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        assert sess.run(scale()) == 2.0**127


def test_what_stands_for_a_scale():
    assert loss_scale.get(None) is None
    assert repr(loss_scale.get(2)) == "FixedLossScale(2.0)"
    dynamic = loss_scale.get("dynamic")
    assert loss_scale.get(dynamic) is dynamic
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier: other"):
        loss_scale.get("other")


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("scale", [16, "dynamic"])
def test_the_update_is_that_without_a_scale(resource, scale):
    x = tf.placeholder(tf.float32, [])
    weights, steps = [], []
    for wrap in (False, True):
        w = tf.get_variable(f"w{wrap}", initializer=2.0, use_resource=resource)
        step = tf.Variable(0)
        opt = tf.train.MomentumOptimizer(0.1, 0.9)
        if wrap:
            opt = experimental.MixedPrecisionLossScaleOptimizer(opt, scale)
        steps.append(opt.minimize(w * w * x, global_step=step, var_list=[w]))
        weights += [w, step]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value in (1.0, -0.5, 2.0):
            sess.run(steps, {x: value})
        a, n, b, m = sess.run(weights)
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert n == m == 3
        sess.run(steps[1], {x: np.nan})
        skipped = sess.run(weights)[2:]
    if scale == "dynamic":
        assert skipped == [b, 3]
    else:
        assert np.isnan(skipped[0])


def test_sessions_ask_for_mixed_precision():
    opt = experimental.enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer(), 2.0)
    assert isinstance(opt, experimental.MixedPrecisionLossScaleOptimizer)
    given = tf.ConfigProto(log_device_placement=False)
    for config in (None, given):
        with tf.Session(config=config) as sess:
            asked = sess.config.graph_options.rewrite_options
            assert asked.auto_mixed_precision == type(asked).ON
    off = tf.ConfigProto()
    off.graph_options.rewrite_options.auto_mixed_precision = type(asked).OFF
    with tf.Session(config=off) as sess:
        assert sess.config is off
    experimental.disable_mixed_precision_graph_rewrite()
    with tf.Session() as sess:
        assert sess.config is None
    with pytest.raises(ValueError, match="must not already be an instance"):
        experimental.enable_mixed_precision_graph_rewrite(opt)
    with pytest.raises(ValueError, match="must be an instance of a tf.train.Optimizer"):
        experimental.enable_mixed_precision_graph_rewrite("sgd")
    with pytest.raises(ValueError, match='"opt" must be an instance of Optimizer'):
        experimental.MixedPrecisionLossScaleOptimizer("sgd", 1)


def test_a_checkpoint_of_the_optimizer_has_the_scale(tmp_path):
    w = tf.get_variable("w", initializer=2.0)
    scale = experimental.DynamicLossScale(4, increment_period=2)
    inner = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(inner, scale)
    train = optimizer.minimize(w * 3.0, var_list=[w])
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, w=w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        path = checkpoint.save(str(tmp_path / "saved"), session=sess)
        kept = sess.run([scale(), scale._num_good_steps, inner.get_slot(w, "momentum"), w])
        sess.run(train)
        assert sess.run(scale()) == 8.0
        checkpoint.restore(path).assert_consumed().run_restore_ops(sess)
        found = sess.run([scale(), scale._num_good_steps, inner.get_slot(w, "momentum"), w])
    np.testing.assert_allclose(found, kept)
    assert kept[:2] == [4.0, 1]
    # What is restored before the scale is there, it gets when it is made.
    with tf.Graph().as_default():
        late = tf.train.Checkpoint()
        status = late.restore(path)
        late.optimizer = experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.MomentumOptimizer(0.1, 0.9), experimental.DynamicLossScale(1)
        )
        with tf.Session() as sess:
            status.initialize_or_restore(sess)
            assert sess.run(late.optimizer._loss_scale()) == 4.0


def test_a_checkpoint_made_at_once_has_the_scale(tmp_path):
    with eager_mode(alone=True):
        w = tf.Variable(2.0)
        scale = experimental.DynamicLossScale(4, increment_period=1)
        inner = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer = experimental.MixedPrecisionLossScaleOptimizer(inner, scale)
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, w=w)
        optimizer.minimize(lambda: w * 3.0, var_list=[w])
        path = checkpoint.save(str(tmp_path / "saved"))
        optimizer.minimize(lambda: w * 3.0, var_list=[w])
        assert scale().numpy() == 16.0
        checkpoint.restore(path).assert_consumed()
        assert scale().numpy() == 8.0
