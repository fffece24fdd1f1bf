"""Restricted Boltzmann machine by contrastive divergence: no optimizer, only assigns."""
import numpy as np
import opdock as tf


def sample_prob(probs, rand):
    return tf.nn.relu(tf.sign(probs - rand))


class RBM(object):
    def __init__(self, name, input_size, output_size):
        with tf.name_scope("rbm_" + name):
            self.weights = tf.Variable(tf.truncated_normal(
                [input_size, output_size], stddev=0.1), name="weights")
            self.v_bias = tf.Variable(tf.zeros([input_size]), name="v_bias")
            self.h_bias = tf.Variable(tf.zeros([output_size]), name="h_bias")

    def propup(self, visible):
        return tf.nn.sigmoid(tf.matmul(visible, self.weights) + self.h_bias)

    def propdown(self, hidden):
        return tf.nn.sigmoid(tf.matmul(hidden, tf.transpose(self.weights)) + self.v_bias)

    def sample_h_given_v(self, v_sample):
        return sample_prob(self.propup(v_sample), tf.random_uniform(tf.shape(self.h_bias)))

    def sample_v_given_h(self, h_sample):
        return sample_prob(self.propdown(h_sample), tf.random_uniform(tf.shape(self.v_bias)))

    def gibbs_vhv(self, v0_sample):
        h = self.sample_h_given_v(v0_sample)
        v = self.sample_v_given_h(h)
        return v, self.sample_h_given_v(v)

    def cd1(self, visibles, learning_rate=0.1):
        h_start = self.propup(visibles)
        v_end = self.propdown(h_start)
        h_end = self.propup(v_end)
        w_positive_grad = tf.matmul(tf.transpose(visibles), h_start)
        w_negative_grad = tf.matmul(tf.transpose(v_end), h_end)
        update_w = self.weights.assign_add(learning_rate * (w_positive_grad - w_negative_grad))
        update_vb = self.v_bias.assign_add(learning_rate * tf.reduce_mean(visibles - v_end, 0))
        update_hb = self.h_bias.assign_add(learning_rate * tf.reduce_mean(h_start - h_end, 0))
        return [update_w, update_vb, update_hb]

    def reconstruction_error(self, dataset):
        err = tf.stop_gradient(dataset - self.gibbs_vhv(dataset)[0])
        return tf.reduce_sum(err * err)


np.random.seed(1)
tf.set_random_seed(1)
patterns = np.kron(np.eye(3), np.ones((1, 4)))
data = patterns[np.random.randint(3, size=90)].astype(np.float32)

x = tf.placeholder(tf.float32, [None, 12])
rbm = RBM("1", 12, 6)
step = rbm.cd1(x, 0.02)
error = rbm.reconstruction_error(x)
fantasy = rbm.gibbs_vhv(x)[0]
sess = tf.Session()
sess.run(tf.global_variables_initializer())
errors = [sess.run(error, {x: data})]
for epoch in range(150):
    for chunk in np.split(data, 9):
        new_w, _, _ = sess.run(step, feed_dict={x: chunk})
    errors.append(sess.run(error, {x: data}))
noisy = data[:12].copy()
noisy[np.arange(12), np.random.randint(12, size=12)] = 0.
repaired = sess.run(fantasy, {x: noisy})
weights_now = sess.run(rbm.weights)
sess.close()
print("error", errors[0], "->", errors[-1])
