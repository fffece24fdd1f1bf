"""Denoising autoencoder with tied weights and dictionaries of variables; RMSProp."""
from __future__ import division, print_function, absolute_import

import opdock as tf
import numpy as np

learning_rate = 0.01
num_steps = 200
batch_size = 64
display_step = 100

num_input = 20
num_hidden_1 = 12
num_hidden_2 = 4

rng = np.random.RandomState(2)
basis = rng.rand(3, num_input)
basis /= basis.sum(axis=0)


def next_batch(n):
    """Points of a 3-d subspace, all between 0 and 1."""
    return rng.rand(n, 3).dot(basis).astype(np.float32)


X = tf.placeholder("float", [None, num_input])
noisy = X + 0.05 * tf.random_normal(tf.shape(X), seed=9)

weights = {
    'encoder_h1': tf.Variable(tf.random_normal([num_input, num_hidden_1], stddev=0.3, seed=1)),
    'encoder_h2': tf.Variable(tf.random_normal([num_hidden_1, num_hidden_2], stddev=0.3, seed=2)),
}
biases = {
    'encoder_b1': tf.Variable(tf.zeros([num_hidden_1])),
    'encoder_b2': tf.Variable(tf.zeros([num_hidden_2])),
    'decoder_b1': tf.Variable(tf.zeros([num_hidden_1])),
    'decoder_b2': tf.Variable(tf.zeros([num_input])),
}


def encoder(x):
    layer_1 = tf.nn.tanh(tf.add(tf.matmul(x, weights['encoder_h1']), biases['encoder_b1']))
    layer_2 = tf.nn.tanh(tf.add(tf.matmul(layer_1, weights['encoder_h2']), biases['encoder_b2']))
    return layer_2


def decoder(x):
    layer_1 = tf.nn.tanh(tf.add(tf.matmul(x, weights['encoder_h2'], transpose_b=True),
                                biases['decoder_b1']))
    layer_2 = tf.nn.sigmoid(tf.add(tf.matmul(layer_1, tf.transpose(weights['encoder_h1'])),
                                   biases['decoder_b2']))
    return layer_2


encoder_op = encoder(noisy)
decoder_op = decoder(encoder_op)

loss = tf.reduce_mean(tf.pow(X - decoder_op, 2))
optimizer = tf.train.RMSPropOptimizer(learning_rate, decay=0.9, momentum=0.1).minimize(loss)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    losses = []
    for i in range(1, num_steps + 1):
        _, l = sess.run([optimizer, loss], feed_dict={X: next_batch(batch_size)})
        losses.append(l)
        if i % display_step == 0 or i == 1:
            print('Step %i: Minibatch Loss: %f' % (i, l))
    test = next_batch(5)
    # Feed an intermediate tensor: no noise this time
    g = sess.run(decoder_op, feed_dict={noisy: test})
    reconstruction_error = np.abs(g - test).mean()
