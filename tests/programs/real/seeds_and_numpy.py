"""Reproducible sessions, nested fetches, feeds of all kinds, numpy functions in the graph."""
import collections

import numpy as np
import opdock as tf


def draw():
    tf.reset_default_graph()
    tf.set_random_seed(1234)
    w = tf.get_variable('w', [4, 3])                       # default: glorot uniform
    noise = tf.random_normal([5], mean=-1, stddev=4)
    shuffled = tf.random_shuffle(tf.range(10), seed=1)
    picks = tf.multinomial(tf.log([[10., 10., 1.]]), 6)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(t) for t in (w, noise, noise, shuffled, picks)]


one, two = draw(), draw()

tf.reset_default_graph()
Stats = collections.namedtuple('Stats', ['mean', 'var'])
x = tf.placeholder(tf.float32, [None, 3], name='x')
flag = tf.placeholder(tf.bool)
idx = tf.placeholder(tf.int32, [None])
mean, var = tf.nn.moments(x, axes=[0])
stats = Stats(mean, var)
fetches = {'stats': stats, 'list': [x, [x * 2]], 'shape': tf.shape(x), 'rows': tf.gather(x, idx)}


def my_func(array):
    """Any numpy function as an op"""
    return np.sinh(array).astype(np.float32)


inverse = tf.py_func(my_func, [x], tf.float32)
inverse.set_shape(x.get_shape())

a = np.arange(6).reshape(2, 3)
with tf.Session() as sess:
    result = sess.run(fetches, feed_dict={x: a, idx: [1, 0, 1]})
    lists = sess.run(mean, {x: [[1, 2, 3], [3, 4, 5]]})
    tuples = sess.run(mean, {'x:0': ((1., 2., 3.),)})
    sinh = sess.run(inverse, {x: a / 10.0})
    overridden = sess.run(var * 2, {mean: [0., 0., 0.], var: [1., 2., 3.]})
    chosen = [sess.run(tf.where(flag, 1.0, -1.0), {flag: f}) for f in (True, False, np.bool_(1))]
    sliced = sess.run([x[0], x[..., 1], x[::-1, :2], x[:, tf.newaxis, -1]], {x: a})
    operators = sess.run([-x, 2 - x, x ** 2, 1.0 / (x + 1), x // 2, x % 2, abs(x - 2)], {x: a})
    scalars = sess.run([tf.constant(3), tf.constant(2.5), tf.constant(True), tf.constant('hi')])
    try:
        sess.run(mean, {x: np.zeros((2, 4))})
        complaint = ''
    except ValueError as e:
        complaint = str(e)
    try:
        sess.run(mean)
        missing = ''
    except tf.errors.InvalidArgumentError as e:
        missing = e.message

g1, g2 = tf.Graph(), tf.Graph()
with g1.as_default():
    c1 = tf.constant([1.0], name='c')
with g2.as_default():
    c2 = tf.constant([2.0], name='c')
with tf.Session(graph=g1) as s1, tf.Session(graph=g2) as s2:
    in_g1, in_g2 = s1.run('c:0'), s2.run(g2.get_tensor_by_name('c:0'))
    try:
        s1.run(c2)
        stranger = ''
    except ValueError as e:
        stranger = str(e)
print(result['stats'], in_g1, in_g2)
