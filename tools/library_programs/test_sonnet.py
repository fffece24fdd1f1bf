"""Sonnet 1.36: modules that share variables, trained, transposed, copied and checkpointed."""

import numpy as np
import sonnet as snt
import tensorflow as tf


def setup_function():
    tf.reset_default_graph()
    tf.set_random_seed(3)


def test_a_perceptron_learns():
    inputs = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    net = snt.nets.MLP([16, 1], initializers={"w": tf.truncated_normal_initializer(stddev=0.3)})
    x = tf.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_mean(tf.square(net(x) - tf.reduce_sum(x, 1, keepdims=True)))
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, step], {x: inputs})[0] for _ in range(80)]
    assert losses[-1] < 0.05 * losses[0]
    assert {v.name for v in net.get_variables()} == {
        f"mlp/linear_{i}/{v}:0" for i in (0, 1) for v in "wb"
    }


def test_modules_share_and_transpose():
    linear = snt.Linear(3)
    x = tf.ones([2, 5])
    y, again = linear(x), linear(2 * x)
    back = linear.transpose()(y)
    assert back.shape.as_list() == [2, 5]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*sess.run([again, 2 * y]), rtol=1e-6)


def test_recurrent_cores():
    deep = snt.DeepRNN([snt.LSTM(4), snt.LSTM(8)], skip_connections=False)
    for core in (snt.LSTM(8), snt.GRU(8), snt.VanillaRNN(8), deep):
        out, _ = tf.nn.dynamic_rnn(core, tf.ones([2, 3, 4]), dtype=tf.float32)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert np.isfinite(sess.run(out)).all() and out.shape.as_list() == [2, 3, 8]


def test_convolutions_and_normalization():
    x = tf.random_normal([2, 8, 8, 3], seed=1)
    y = snt.Conv2D(4, 3, stride=2)(x)
    z = snt.Conv2DTranspose(3, (8, 8), 3, stride=2)(y)
    normal = snt.BatchNorm()(z, is_training=True)
    depth = snt.DepthwiseConv2D(2, 3)(x)
    separable = snt.SeparableConv2D(5, 2, 3)(x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run([normal, depth, separable])
    np.testing.assert_allclose(values[0].mean((0, 1, 2)), np.zeros(3), atol=1e-5)
    assert [v.shape for v in values[1:]] == [(2, 8, 8, 6), (2, 8, 8, 5)]


def test_vector_quantization_and_memory():
    vq = snt.nets.VectorQuantizer(embedding_dim=4, num_embeddings=8, commitment_cost=0.25)
    found = vq(tf.random_normal([5, 4], seed=2), is_training=True)
    grad = tf.gradients(found["loss"], vq.embeddings)[0]
    memory = snt.RelationalMemory(mem_slots=2, head_size=3, num_heads=2)
    state = memory.initial_state(4, trainable=False)
    out, _ = memory(tf.ones([4, 5]), state)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert np.isfinite(sess.run([found["perplexity"], tf.norm(grad), tf.norm(out)])).all()
