"""A variational autoencoder whose prior, posterior and likelihood are tf.distributions."""

import numpy as np
import opdock as tf

tfd = tf.distributions
tf.set_random_seed(3)
rng = np.random.RandomState(0)
# Bars: an image has one row or one column lit.
bars = np.zeros((8, 4, 4), np.float32)
for k in range(4):
    bars[k, k, :] = 1.0
    bars[4 + k, :, k] = 1.0
bars = bars.reshape(8, 16)

images = tf.placeholder(tf.float32, [None, 16])


def encoder(x):
    with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(x, 32, tf.nn.relu)
        loc = tf.layers.dense(hidden, 3, name="loc")
        scale = tf.layers.dense(hidden, 3, tf.nn.softplus, name="scale")
        return tfd.Normal(loc, scale + 1e-3, name="posterior")


def decoder(code):
    with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(code, 32, tf.nn.relu)
        return tfd.Bernoulli(logits=tf.layers.dense(hidden, 16), name="likelihood")


prior = tfd.Normal(tf.zeros(3), tf.ones(3))
posterior = encoder(images)
reconstruction = tf.reduce_sum(decoder(posterior.sample(seed=1)).log_prob(images), 1)
divergence = tf.reduce_sum(tfd.kl_divergence(posterior, prior), 1)
elbo = tf.reduce_mean(reconstruction - divergence)
train = tf.train.AdamOptimizer(0.01).minimize(-elbo)

losses = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(400):
        batch = bars[rng.randint(0, 8, 32)]
        losses.append(-sess.run([elbo, train], {images: batch})[0])
    back = sess.run(decoder(encoder(images).mean()).mean(), {images: bars})
    spread = sess.run(posterior.stddev(), {images: bars})
    extra = sess.run(divergence, {images: bars})
