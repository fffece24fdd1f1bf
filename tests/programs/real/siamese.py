"""Siamese network with contrastive loss: the same tower twice by scope.reuse_variables()."""
import numpy as np
import opdock as tf


class siamese:
    def __init__(self):
        self.x1 = tf.placeholder(tf.float32, [None, 10])
        self.x2 = tf.placeholder(tf.float32, [None, 10])

        with tf.variable_scope("siamese") as scope:
            self.o1 = self.network(self.x1)
            scope.reuse_variables()
            self.o2 = self.network(self.x2)

        self.y_ = tf.placeholder(tf.float32, [None])
        self.loss = self.loss_with_spring()

    def network(self, x):
        fc1 = self.fc_layer(x, 24, "fc1")
        ac1 = tf.nn.relu(fc1)
        fc2 = self.fc_layer(ac1, 16, "fc2")
        ac2 = tf.nn.relu(fc2)
        return self.fc_layer(ac2, 2, "fc3")

    def fc_layer(self, bottom, n_weight, name):
        assert len(bottom.get_shape()) == 2
        n_prev_weight = bottom.get_shape()[1]
        initer = tf.truncated_normal_initializer(stddev=0.3)
        W = tf.get_variable(name + 'W', dtype=tf.float32, shape=[n_prev_weight, n_weight],
                            initializer=initer)
        b = tf.get_variable(name + 'b', dtype=tf.float32,
                            initializer=tf.constant(0.01, shape=[n_weight], dtype=tf.float32))
        return tf.nn.bias_add(tf.matmul(bottom, W), b)

    def loss_with_spring(self):
        margin = 5.0
        labels_t = self.y_
        labels_f = tf.subtract(1.0, self.y_, name="1-yi")
        eucd2 = tf.pow(tf.subtract(self.o1, self.o2), 2)
        eucd2 = tf.reduce_sum(eucd2, 1)
        eucd = tf.sqrt(eucd2 + 1e-6, name="eucd")
        C = tf.constant(margin, name="C")
        pos = tf.multiply(labels_t, eucd2, name="yi_x_eucd2")
        neg = tf.multiply(labels_f, tf.pow(tf.maximum(tf.subtract(C, eucd), 0), 2),
                          name="Nyi_x_C-eucd_xx_2")
        losses = tf.add(pos, neg, name="losses")
        return tf.reduce_mean(losses, name="loss")


np.random.seed(2)
tf.set_random_seed(2)
centers = np.random.randn(4, 10) * 1.5


def batch(n):
    y1, y2 = np.random.randint(4, size=(2, n))
    x1, x2 = (centers[y] + 0.4 * np.random.randn(n, 10) for y in (y1, y2))
    return x1, x2, (y1 == y2).astype('float')


if __name__ == '__main__':
    sess = tf.InteractiveSession()
    network = siamese()
    train_step = tf.train.GradientDescentOptimizer(0.01).minimize(network.loss)
    saver = tf.train.Saver()
    tf.initialize_all_variables().run()
    history = []
    for step in range(200):
        b1, b2, b_y = batch(64)
        _, loss_v = sess.run([train_step, network.loss], feed_dict={
            network.x1: b1, network.x2: b2, network.y_: b_y})
        if np.isnan(loss_v):
            print('Model diverged with loss = NaN')
            quit()
        history.append(loss_v)
    same, other = network.o1.eval({network.x1: centers}), network.o2.eval({network.x2: centers})
    distances = np.linalg.norm(same[:, None] - other[None], axis=-1)
    variable_names = [v.name for v in tf.trainable_variables()]
    print('loss %.3f -> %.3f' % (history[0], history[-1]))
    sess.close()
