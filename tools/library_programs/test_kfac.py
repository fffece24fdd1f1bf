"""KFAC 0.2.0: natural gradients of a linear model, with periodic inverses."""

import kfac
import numpy as np
import tensorflow as tf


def test_natural_gradients():
    tf.reset_default_graph()
    inputs = np.random.RandomState(0).randn(32, 4).astype(np.float32)
    x = tf.constant(inputs)
    w = tf.get_variable("w", [4, 1])
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(x, w) + b
    layers = kfac.LayerCollection()
    layers.register_fully_connected((w, b), x, y)
    layers.register_normal_predictive_distribution(y)
    loss = tf.reduce_mean(tf.square(y - 1.0))
    step = kfac.PeriodicInvCovUpdateKfacOpt(
        learning_rate=0.3,
        damping=0.001,
        cov_ema_decay=0.95,
        layer_collection=layers,
        momentum=0.0,
        batch_size=32,
        invert_every=1,
        cov_update_every=1,
    ).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, step])[0] for _ in range(30)]
    assert losses[-1] < 0.01 * losses[0]
