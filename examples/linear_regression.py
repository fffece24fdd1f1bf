"""Fits a line to four points: the smallest whole TensorFlow 1 program."""

import opdock as tf

W = tf.Variable([0.1], tf.float32)
b = tf.Variable([0.0], tf.float32)
x = tf.placeholder(tf.float32)
y = tf.placeholder(tf.float32)

model = W * x + b
loss = tf.reduce_sum(tf.square(model - y))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)

feed = {x: [1.0, 2.0, 3.0, 4.0], y: [1.5, 3.5, 5.5, 7.5]}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(1000):
        sess.run(train, feed)
    final_W, final_b, cost = sess.run([W, b, loss], feed)

print(f"W: {final_W} b: {final_b} cost: {cost}")  # W: [2.] b: [-0.5], but for rounding
