'''
Linear regression, the "hello world" of every TensorFlow course.
Fits a line to noisy points with one-sample gradient descent.
'''
from __future__ import print_function

import numpy
import opdock as tf

rng = numpy.random.RandomState(7)

# Parameters
learning_rate = 0.05
training_epochs = 12
display_step = 4

# Training data
train_X = rng.uniform(-2, 2, size=40)
train_Y = 1.7 * train_X - 0.4 + 0.05 * rng.randn(40)
n_samples = train_X.shape[0]

# tf Graph input
X = tf.placeholder("float")
Y = tf.placeholder("float")

# Model weights
W = tf.Variable(rng.randn(), name="weight")
b = tf.Variable(rng.randn(), name="bias")

# A linear model and its mean squared error
pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * n_samples)
#  minimize() knows to modify W and b because they are trainable by default
single = tf.square(pred - Y) / 2
optimizer = tf.train.GradientDescentOptimizer(learning_rate).minimize(single)

init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    first_cost = sess.run(cost, feed_dict={X: train_X, Y: train_Y})

    for epoch in range(training_epochs):
        for (x, y) in zip(train_X, train_Y):
            sess.run(optimizer, feed_dict={X: x, Y: y})

        if (epoch + 1) % display_step == 0:
            c = sess.run(cost, feed_dict={X: train_X, Y: train_Y})
            print("Epoch:", '%04d' % (epoch + 1), "cost=", "{:.9f}".format(c),
                  "W=", sess.run(W), "b=", sess.run(b))

    print("Optimization Finished!")
    training_cost = sess.run(cost, feed_dict={X: train_X, Y: train_Y})
    weight, bias = W.eval(), b.eval(session=sess)
    print("Training cost=", training_cost, "W=", weight, "b=", bias, '\n')

# The closed form, to compare
slope, intercept = numpy.polyfit(train_X, train_Y, 1)
