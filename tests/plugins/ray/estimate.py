"""An estimator of three tasks and one that evaluates, which TF_CONFIG tells who they are."""

import sys

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
x = rng.randn(64, 3).astype(np.float32)
t = x.sum(1, keepdims=True)


def model_fn(features, labels, mode):
    y = tf.layers.dense(features["x"], 1)
    loss = tf.reduce_mean(tf.square(y - labels))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def batches():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, t)).repeat().batch(16)


config = tf.estimator.RunConfig(save_checkpoints_steps=100)
estimator = tf.estimator.Estimator(model_fn, sys.argv[1], config)
tf.logging.set_verbosity(tf.logging.INFO)
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(batches, max_steps=300),
    tf.estimator.EvalSpec(batches, steps=4, throttle_secs=1, start_delay_secs=0),
)
print("done", estimator.config.task_type, flush=True)
