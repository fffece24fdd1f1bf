"""A language model of so many layers, from its words to a saved checkpoint: `transformer.py 12`.

It is a program as a user writes one, which `whole.py` runs on opdock and on TensorFlow.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import opdock as tf

WORDS, LENGTH, WIDTH, HEADS, BATCH, STEPS = 200, 32, 64, 4, 8, 40


def dense(x: Any, units: int, name: str) -> Any:
    """A dense layer."""
    start = tf.truncated_normal_initializer(stddev=0.05)
    kernel = tf.get_variable(f"{name}_kernel", [int(x.shape[-1]), units], initializer=start)
    bias = tf.get_variable(f"{name}_bias", [units], initializer=tf.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(x, kernel), bias)


def normalize(x: Any, name: str) -> Any:
    """Layer normalization."""
    scale = tf.get_variable(f"{name}_scale", [WIDTH], initializer=tf.ones_initializer())
    shift = tf.get_variable(f"{name}_shift", [WIDTH], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-6)


def attention(x: Any, mask: Any) -> Any:
    """Self-attention of several heads, which sees no later word."""
    split = [BATCH, LENGTH, HEADS, WIDTH // HEADS]
    query, key, value = (
        tf.transpose(tf.reshape(dense(x, WIDTH, name), split), [0, 2, 1, 3])
        for name in ("query", "key", "value")
    )
    scores = tf.matmul(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5 + mask
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return dense(tf.reshape(mixed, [BATCH * LENGTH, WIDTH]), WIDTH, "mixed")


def model(ids: Any, layers: int, rate: Any) -> Any:
    """The scores of each next word."""
    table = tf.get_variable("words", [WORDS, WIDTH])
    places = tf.get_variable("places", [LENGTH, WIDTH])
    x = tf.reshape(tf.nn.embedding_lookup(table, ids) + places, [BATCH * LENGTH, WIDTH])
    mask = (1.0 - tf.matrix_band_part(tf.ones([LENGTH, LENGTH]), -1, 0)) * -1e9
    for layer in range(layers):
        with tf.variable_scope(f"layer_{layer}"):
            x = normalize(x + tf.nn.dropout(attention(x, mask), rate=rate), "attended")
            inner = tf.nn.relu(dense(x, 4 * WIDTH, "inner"))
            x = normalize(x + tf.nn.dropout(dense(inner, WIDTH, "outer"), rate=rate), "done")
    return dense(x, WORDS, "next")


def main(layers: int) -> None:
    """Trains on sequences that count upwards, evaluates and saves."""
    tf.set_random_seed(1)
    draw = np.random.default_rng(1)
    ids = tf.placeholder(tf.int32, [BATCH, LENGTH + 1])
    rate = tf.placeholder_with_default(0.0, [])
    logits = model(ids[:, :-1], layers, rate)
    labels = tf.reshape(ids[:, 1:], [-1])
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    right = tf.reduce_mean(
        tf.to_float(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels))
    )
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train = tf.train.AdamOptimizer(3e-3).apply_gradients(zip(gradients, variables, strict=True))
    saver = tf.train.Saver()

    def batch() -> Any:
        return (draw.integers(0, WORDS, (BATCH, 1)) + np.arange(LENGTH + 1)) % WORDS

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([train, loss], {ids: batch(), rate: 0.1})[1] for _ in range(STEPS)]
        for _ in range(10):
            session.run([loss, right], {ids: batch()})
        saver.save(session, "model.ckpt")
    if not losses[-1] < losses[0]:
        raise SystemExit(f"the loss went from {losses[0]} to {losses[-1]}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
