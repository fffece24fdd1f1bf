"""A GAN that learns a Gaussian: two optimizers, variables told apart by scope, reuse=True."""
import argparse

import numpy as np
import opdock as tf


class DataDistribution(object):
    def __init__(self):
        self.mu = 4
        self.sigma = 0.5

    def sample(self, N):
        samples = np.random.normal(self.mu, self.sigma, N)
        samples.sort()
        return samples


class GeneratorDistribution(object):
    def __init__(self, range):
        self.range = range

    def sample(self, N):
        return np.linspace(-self.range, self.range, N) + np.random.random(N) * 0.01


def linear(input, output_dim, scope=None, stddev=1.0):
    with tf.variable_scope(scope or 'linear'):
        w = tf.get_variable('w', [input.get_shape()[1], output_dim],
                            initializer=tf.random_normal_initializer(stddev=stddev))
        b = tf.get_variable('b', [output_dim], initializer=tf.constant_initializer(0.0))
        return tf.matmul(input, w) + b


def generator(input, h_dim):
    h0 = tf.nn.softplus(linear(input, h_dim, 'g0'))
    return linear(h0, 1, 'g1')


def discriminator(input, h_dim):
    h0 = tf.nn.relu(linear(input, h_dim * 2, 'd0', stddev=0.3))
    h1 = tf.tanh(linear(h0, h_dim * 2, scope='d1', stddev=0.3))
    return linear(h1, 1, scope='d3', stddev=0.3)


class GAN(object):
    def __init__(self, params):
        with tf.variable_scope('G'):
            self.z = tf.placeholder(tf.float32, shape=(params.batch_size, 1))
            self.G = generator(self.z, params.hidden_size)
        self.x = tf.placeholder(tf.float32, shape=(params.batch_size, 1))
        with tf.variable_scope('D'):
            self.D1 = discriminator(self.x, params.hidden_size)
        with tf.variable_scope('D', reuse=True):
            self.D2 = discriminator(self.G, params.hidden_size)

        ce = tf.nn.sigmoid_cross_entropy_with_logits
        self.loss_d = tf.reduce_mean(
            ce(logits=self.D1, labels=tf.ones_like(self.D1))
            + ce(logits=self.D2, labels=tf.zeros_like(self.D2)))
        self.loss_g = tf.reduce_mean(ce(logits=self.D2, labels=tf.ones_like(self.D2)))

        vars = tf.trainable_variables()
        self.d_params = [v for v in vars if v.name.startswith('D/')]
        self.g_params = [v for v in vars if v.name.startswith('G/')]
        self.opt_d = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(
            self.loss_d, var_list=self.d_params)
        self.opt_g = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(
            self.loss_g, var_list=self.g_params)


def train(model, data, gen, params):
    means = []
    with tf.Session() as session:
        tf.local_variables_initializer().run()
        tf.global_variables_initializer().run()
        frozen = session.run(model.d_params)
        z = gen.sample(params.batch_size)
        session.run([model.opt_g], {model.z: np.reshape(z, (params.batch_size, 1))})
        untouched = all(np.array_equal(a, b)
                        for a, b in zip(frozen, session.run(model.d_params)))
        for step in range(params.num_steps + 1):
            x = data.sample(params.batch_size)
            z = gen.sample(params.batch_size)
            loss_d, _, = session.run([model.loss_d, model.opt_d], {
                model.x: np.reshape(x, (params.batch_size, 1)),
                model.z: np.reshape(z, (params.batch_size, 1))
            })
            z = gen.sample(params.batch_size)
            loss_g, _, out = session.run([model.loss_g, model.opt_g, model.G], {
                model.z: np.reshape(z, (params.batch_size, 1))
            })
            means.append(out.mean())
            if step % params.log_every == 0:
                print('{}: {:.4f}\t{:.4f}'.format(step, loss_d, loss_g))
    return means, untouched


def parse_args(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument('--num-steps', type=int, default=600)
    parser.add_argument('--hidden-size', type=int, default=4)
    parser.add_argument('--batch-size', type=int, default=32)
    parser.add_argument('--log-every', type=int, default=200)
    return parser.parse_args(argv)


if __name__ == '__main__':
    seed = 42
    np.random.seed(seed)
    tf.set_random_seed(seed)
    args = parse_args([])
    model = GAN(args)
    means, untouched = train(model, DataDistribution(), GeneratorDistribution(range=8), args)
    names = [v.name for v in tf.trainable_variables()]
