"""Variational autoencoder with the reparametrization trick, class style."""
import numpy as np
import opdock as tf

np.random.seed(0)
tf.set_random_seed(0)


def xavier_init(fan_in, fan_out, constant=1):
    """Xavier initialization of network weights"""
    low = -constant * np.sqrt(6.0 / (fan_in + fan_out))
    high = constant * np.sqrt(6.0 / (fan_in + fan_out))
    return tf.random_uniform((fan_in, fan_out), minval=low, maxval=high, dtype=tf.float32)


class VariationalAutoencoder(object):
    def __init__(self, network_architecture, transfer_fct=tf.nn.softplus,
                 learning_rate=0.001, batch_size=100):
        self.network_architecture = network_architecture
        self.transfer_fct = transfer_fct
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.x = tf.placeholder(tf.float32, [None, network_architecture["n_input"]])
        self._create_network()
        self._create_loss_optimizer()
        init = tf.global_variables_initializer()
        self.sess = tf.InteractiveSession()
        self.sess.run(init)

    def _create_network(self):
        network_weights = self._initialize_weights(**self.network_architecture)
        self.z_mean, self.z_log_sigma_sq = self._recognition_network(
            network_weights["weights_recog"], network_weights["biases_recog"])
        n_z = self.network_architecture["n_z"]
        eps = tf.random_normal((self.batch_size, n_z), 0, 1, dtype=tf.float32)
        # z = mu + sigma*epsilon
        self.z = tf.add(self.z_mean, tf.multiply(tf.sqrt(tf.exp(self.z_log_sigma_sq)), eps))
        self.x_reconstr_mean = self._generator_network(
            network_weights["weights_gener"], network_weights["biases_gener"])

    def _initialize_weights(self, n_hidden_recog, n_hidden_gener, n_input, n_z):
        all_weights = dict()
        all_weights['weights_recog'] = {
            'h1': tf.Variable(xavier_init(n_input, n_hidden_recog)),
            'out_mean': tf.Variable(xavier_init(n_hidden_recog, n_z)),
            'out_log_sigma': tf.Variable(xavier_init(n_hidden_recog, n_z))}
        all_weights['biases_recog'] = {
            'b1': tf.Variable(tf.zeros([n_hidden_recog], dtype=tf.float32)),
            'out_mean': tf.Variable(tf.zeros([n_z], dtype=tf.float32)),
            'out_log_sigma': tf.Variable(tf.zeros([n_z], dtype=tf.float32))}
        all_weights['weights_gener'] = {
            'h1': tf.Variable(xavier_init(n_z, n_hidden_gener)),
            'out_mean': tf.Variable(xavier_init(n_hidden_gener, n_input))}
        all_weights['biases_gener'] = {
            'b1': tf.Variable(tf.zeros([n_hidden_gener], dtype=tf.float32)),
            'out_mean': tf.Variable(tf.zeros([n_input], dtype=tf.float32))}
        return all_weights

    def _recognition_network(self, weights, biases):
        layer_1 = self.transfer_fct(tf.add(tf.matmul(self.x, weights['h1']), biases['b1']))
        z_mean = tf.add(tf.matmul(layer_1, weights['out_mean']), biases['out_mean'])
        z_log_sigma_sq = tf.add(
            tf.matmul(layer_1, weights['out_log_sigma']), biases['out_log_sigma'])
        return (z_mean, z_log_sigma_sq)

    def _generator_network(self, weights, biases):
        layer_1 = self.transfer_fct(tf.add(tf.matmul(self.z, weights['h1']), biases['b1']))
        return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights['out_mean']), biases['out_mean']))

    def _create_loss_optimizer(self):
        reconstr_loss = -tf.reduce_sum(
            self.x * tf.log(1e-10 + self.x_reconstr_mean)
            + (1 - self.x) * tf.log(1e-10 + 1 - self.x_reconstr_mean), 1)
        latent_loss = -0.5 * tf.reduce_sum(
            1 + self.z_log_sigma_sq - tf.square(self.z_mean) - tf.exp(self.z_log_sigma_sq), 1)
        self.cost = tf.reduce_mean(reconstr_loss + latent_loss)
        self.optimizer = tf.train.AdamOptimizer(
            learning_rate=self.learning_rate).minimize(self.cost)

    def partial_fit(self, X):
        _, cost = self.sess.run((self.optimizer, self.cost), feed_dict={self.x: X})
        return cost

    def transform(self, X):
        return self.sess.run(self.z_mean, feed_dict={self.x: X})

    def generate(self, z_mu=None):
        if z_mu is None:
            z_mu = np.random.normal(size=[1, self.network_architecture["n_z"]])
        return self.sess.run(self.x_reconstr_mean, feed_dict={self.z: z_mu})


def stripes(n):
    """Pictures of 6x6 with one bright row."""
    pictures = np.full((n, 6, 6), 0.05)
    rows = np.random.randint(6, size=n)
    pictures[np.arange(n), rows] = 0.95
    return pictures.reshape(n, 36), rows


architecture = dict(n_hidden_recog=32, n_hidden_gener=32, n_input=36, n_z=2)
vae = VariationalAutoencoder(architecture, learning_rate=0.01, batch_size=64)
costs = [vae.partial_fit(stripes(64)[0]) for _ in range(250)]
print("cost %.3f -> %.3f" % (costs[0], np.mean(costs[-20:])))
codes = vae.transform(stripes(10)[0])
pictures = vae.generate(np.random.normal(size=(64, 2)))
vae.sess.close()
