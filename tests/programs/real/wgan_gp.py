"""DCGAN-like critic with a gradient penalty: gradients of gradients through convolutions."""

import numpy as np
import opdock as tf

SIZE, Z, BATCH = 8, 6, 16
np.random.seed(0)
tf.set_random_seed(0)


def lrelu(x, leak=0.2, name="lrelu"):
    with tf.variable_scope(name):
        f1, f2 = 0.5 * (1 + leak), 0.5 * (1 - leak)
        return f1 * x + f2 * abs(x)


def conv2d(input_, output_dim, k=3, d=2, stddev=0.1, name="conv2d"):
    with tf.variable_scope(name):
        w = tf.get_variable(
            "w",
            [k, k, input_.get_shape()[-1], output_dim],
            initializer=tf.truncated_normal_initializer(stddev=stddev),
        )
        conv = tf.nn.conv2d(input_, w, strides=[1, d, d, 1], padding="SAME")
        biases = tf.get_variable("biases", [output_dim], initializer=tf.constant_initializer(0.0))
        return tf.reshape(tf.nn.bias_add(conv, biases), tf.shape(conv))


def deconv2d(input_, output_shape, k=3, d=2, stddev=0.1, name="deconv2d"):
    with tf.variable_scope(name):
        w = tf.get_variable(
            "w",
            [k, k, output_shape[-1], input_.get_shape()[-1]],
            initializer=tf.random_normal_initializer(stddev=stddev),
        )
        deconv = tf.nn.conv2d_transpose(input_, w, output_shape=output_shape, strides=[1, d, d, 1])
        biases = tf.get_variable("biases", [output_shape[-1]], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(deconv, biases)


def linear(input_, output_size, scope=None):
    shape = input_.get_shape().as_list()
    with tf.variable_scope(scope or "Linear"):
        matrix = tf.get_variable(
            "Matrix", [shape[1], output_size], tf.float32, tf.random_normal_initializer(stddev=0.2)
        )
        bias = tf.get_variable("bias", [output_size], initializer=tf.constant_initializer(0.0))
        return tf.matmul(input_, matrix) + bias


def generator(z):
    with tf.variable_scope("generator"):
        h0 = tf.reshape(linear(z, 2 * 2 * 12, "g_h0_lin"), [-1, 2, 2, 12])
        h0 = tf.nn.relu(h0)
        h1 = tf.nn.relu(deconv2d(h0, [BATCH, 4, 4, 8], name="g_h1"))
        return tf.nn.sigmoid(deconv2d(h1, [BATCH, SIZE, SIZE, 1], name="g_h2"))


def critic(image, reuse=False):
    with tf.variable_scope("critic") as scope:
        if reuse:
            scope.reuse_variables()
        h0 = lrelu(conv2d(image, 8, name="d_h0_conv"))
        h1 = tf.nn.tanh(conv2d(h0, 12, name="d_h1_conv"))
        return linear(tf.reshape(h1, [BATCH, 2 * 2 * 12]), 1, "d_h3_lin")


real = tf.placeholder(tf.float32, [BATCH, SIZE, SIZE, 1], name="real_images")
z = tf.placeholder(tf.float32, [None, Z], name="z")
fake = generator(z)
D_real, D_fake = critic(real), critic(fake, reuse=True)
alpha = tf.random_uniform(shape=[BATCH, 1, 1, 1], minval=0.0, maxval=1.0)
interpolates = real + alpha * (fake - real)
gradients = tf.gradients(critic(interpolates, reuse=True), [interpolates])[0]
slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), reduction_indices=[1, 2, 3]))
gradient_penalty = tf.reduce_mean((slopes - 1.0) ** 2)
wasserstein = tf.reduce_mean(D_real) - tf.reduce_mean(D_fake)
d_loss = -wasserstein + 10.0 * gradient_penalty
g_loss = -tf.reduce_mean(D_fake)

t_vars = tf.trainable_variables()
d_vars = [var for var in t_vars if "d_" in var.name]
g_vars = [var for var in t_vars if "g_" in var.name]
d_optim = tf.train.AdamOptimizer(2e-3, beta1=0.5, beta2=0.9).minimize(d_loss, var_list=d_vars)
g_optim = tf.train.AdamOptimizer(1e-3, beta1=0.5, beta2=0.9).minimize(g_loss, var_list=g_vars)


def blobs():
    yy, xx = np.mgrid[:SIZE, :SIZE]
    cy, cx = np.random.uniform(2, 5, (2, BATCH, 1, 1))
    return np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 3.0)[..., None]


penalties, distances = [], []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(60):
        for _ in range(3):
            feed = {real: blobs(), z: np.random.uniform(-1, 1, [BATCH, Z])}
            _, gp, w = sess.run([d_optim, gradient_penalty, wasserstein], feed)
        penalties.append(gp)
        distances.append(w)
        sess.run(g_optim, {z: np.random.uniform(-1, 1, [BATCH, Z])})
    samples = sess.run(fake, {z: np.random.uniform(-1, 1, [BATCH, Z])})
    # The penalty's gradient against a finite difference (past the leaky units, where it is smooth)
    (kernel,) = [v for v in d_vars if v.op.name == "critic/d_h1_conv/w"]
    feed[alpha] = np.full([BATCH, 1, 1, 1], 0.5)
    analytic = sess.run(tf.gradients(gradient_penalty, kernel)[0], feed)
    value, numeric = sess.run(kernel), []
    for delta in (1e-2, -1e-2):
        moved = value.copy()
        moved[1, 1, 0, 0] += delta
        kernel.load(moved, sess)
        numeric.append(sess.run(gradient_penalty, feed))
    numeric = (numeric[0] - numeric[1]) / 2e-2
print("penalty %.3f -> %.3f" % (penalties[0], penalties[-1]))
