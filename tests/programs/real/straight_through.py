"""Custom gradients in three ways: gradient_override_map, tf.custom_gradient, stop_gradient; a py_func
with a gradient of its own, the well-known trick."""
import numpy as np
import opdock as tf
from opdock.python.framework import ops


@tf.RegisterGradient("StraightThrough")
def _straight_through(op, grad):
    return grad


@ops.RegisterGradient("ReverseGradient")
def _flip(op, grad):
    return [tf.negative(grad) * 0.5]


def binarize(x):
    g = tf.get_default_graph()
    with ops.name_scope("Binarized") as name:
        with g.gradient_override_map({"Sign": "StraightThrough"}):
            return tf.sign(x, name=name)


def flip_gradient(x):
    with tf.get_default_graph().gradient_override_map({"Identity": "ReverseGradient"}):
        return tf.identity(x)


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))
    return tf.log(1 + e), grad


def py_func(func, inp, Tout, stateful=True, name=None, grad=None):
    rnd_name = 'PyFuncGrad' + str(np.random.randint(0, 1E+8))
    tf.RegisterGradient(rnd_name)(grad)
    g = tf.get_default_graph()
    with g.gradient_override_map({"PyFunc": rnd_name}):
        return tf.py_func(func, inp, Tout, stateful=stateful, name=name)


def mysquare(x, name=None):
    with ops.name_scope(name, "Mysquare", [x]) as name:
        def _grad(op, grad):
            return grad * 20 * op.inputs[0]      # wrong on purpose, to see it
        sqr_x = py_func(np.square, [x], [tf.float32], name=name, grad=_grad)
        return sqr_x[0]


x = tf.placeholder(tf.float32, [None])
binary = binarize(x)
hard = tf.stop_gradient(tf.round(x) - x) + x
squared = mysquare(x)
outputs = {'binary': binary, 'flipped': flip_gradient(x * 3.0), 'hard': hard,
           'log1pexp': log1pexp(x), 'square': squared}
grads = {k: tf.gradients(v, x)[0] for k, v in outputs.items()}
plain = tf.gradients(tf.log(1 + tf.exp(x)), x)[0]
cubic = tf.reduce_sum(x ** 3)
hessian = tf.hessians(cubic, x)[0]
vector = tf.constant([1., 0., 2.])
hvp = tf.gradients(tf.reduce_sum(tf.gradients(cubic, x)[0] * vector), x)[0]
blocked = tf.gradients(x * tf.stop_gradient(x), x)[0]
unconnected = tf.gradients(tf.constant([1.0]), x)

# A binary layer learns a sign pattern
np.random.seed(0)
inputs = np.random.choice([-1., 1.], size=(64, 5)).astype(np.float32)
wanted = inputs.dot(np.array([1, -1, -1, 1, -1], np.float32)).reshape(-1, 1)
w = tf.Variable(tf.random_uniform([5, 1], -0.5, 0.5, seed=3))
loss = tf.reduce_mean(tf.square(tf.matmul(inputs, binarize(w)) - wanted))
train_op = tf.train.GradientDescentOptimizer(0.02).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    at = np.array([-1.2, 0.4, 2.0], np.float32)
    values, slopes = sess.run([outputs, grads], {x: at})
    overflow = sess.run([grads['log1pexp'], plain], {x: [100.]})
    curvature, product, once = sess.run([hessian, hvp, blocked], {x: at})
    for _ in range(40):
        sess.run(train_op)
    final_loss, signs = sess.run([loss, tf.sign(w)])
print(signs.ravel(), final_loss)
