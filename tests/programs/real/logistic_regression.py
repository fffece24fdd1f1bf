"""Softmax regression in an InteractiveSession, as typed into a notebook."""
import numpy as np
import opdock as tf

n_features, n_classes = 8, 3
rng = np.random.RandomState(0)
centers = rng.randn(n_classes, n_features) * 2.0


def next_batch(n):
    labels = rng.randint(n_classes, size=n)
    xs = centers[labels] + rng.randn(n, n_features)
    return xs, np.eye(n_classes)[labels]          # float64 on purpose: a feed casts


sess = tf.InteractiveSession()

x = tf.placeholder(tf.float32, [None, n_features])
y_ = tf.placeholder(tf.float32, [None, n_classes])
W = tf.Variable(tf.zeros([n_features, n_classes]))
b = tf.Variable(tf.zeros([n_classes]))

y = tf.nn.softmax(tf.matmul(x, W) + b)
cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
train_step = tf.train.GradientDescentOptimizer(0.2).minimize(cross_entropy)

correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

tf.initialize_all_variables().run()

test_x, test_y = next_batch(300)
before = accuracy.eval({x: test_x, y_: test_y})
initial_loss = cross_entropy.eval(feed_dict={x: test_x, y_: test_y})
for _ in range(150):
    batch_xs, batch_ys = next_batch(50)
    train_step.run({x: batch_xs, y_: batch_ys})

after = accuracy.eval({x: test_x, y_: test_y})
final_loss = cross_entropy.eval(feed_dict={x: test_x, y_: test_y})
print("accuracy %g -> %g" % (before, after))

# Softmax by numpy on the learned weights
logits = test_x.dot(W.eval()) + b.eval()
expd = np.exp(logits - logits.max(axis=1, keepdims=True))
numpy_probs = expd / expd.sum(axis=1, keepdims=True)
tf_probs = y.eval({x: test_x.tolist()})
sess.close()
