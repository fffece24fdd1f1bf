"""Trains a moment with all that leaves files and starts threads; writes down what came of it."""

import sys

import opdock as tf

FOLDER, TOLD = sys.argv[1:]


def train():
    numbers = tf.data.Dataset.range(8).map(lambda i: tf.cast(i, tf.float32), num_parallel_calls=2)
    x = numbers.repeat().batch(4).prefetch(2).make_one_shot_iterator().get_next()
    w = tf.get_variable("w", [64, 64], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.tanh(w + tf.reduce_max(x) * 0.0) - 1.0))
    tf.summary.scalar("loss", loss)
    step = tf.train.get_or_create_global_step()
    optimize = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=FOLDER, save_checkpoint_steps=2, save_summaries_steps=1
    ) as session:
        for _ in range(4):
            session.run(optimize)
    saved = tf.train.load_checkpoint(FOLDER).get_tensor("global_step")
    return str(saved / 2.0)


with open(TOLD, "w") as told:
    try:
        told.write(train())
    except (tf.errors.OpError, OSError) as e:
        told.write(f"{type(e).__name__}: {e}")
