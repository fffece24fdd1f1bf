"""Loops in the graph: power iteration, Newton's square root, Fibonacci, a growing shape, a scan."""
import numpy as np
import opdock as tf

np.random.seed(0)
a = np.random.randn(6, 6)
sym = (a + a.T + 6 * np.eye(6)).astype(np.float64)

A = tf.placeholder(tf.float64, [6, 6])
tolerance = tf.constant(1e-12, tf.float64)


def condition(i, v, eigenvalue, change):
    return tf.logical_and(i < 500, change > tolerance)


def body(i, v, eigenvalue, change):
    w = tf.matmul(A, v)
    w = w / tf.norm(w)
    new = tf.squeeze(tf.matmul(w, tf.matmul(A, w), transpose_a=True))
    return [i + 1, w, new, tf.abs(new - eigenvalue)]


start = tf.ones([6, 1], tf.float64)
iterations, vector, eigenvalue, _ = tf.while_loop(
    condition, body, [tf.constant(0), start, tf.constant(0., tf.float64),
                      tf.constant(1., tf.float64)], parallel_iterations=10, back_prop=False)

# Newton
number = tf.placeholder(tf.float32, [])
root = tf.while_loop(lambda r: tf.abs(r * r - number) > 1e-4 * number,
                     lambda r: (r + number / r) * 0.5, [number])

# Fibonacci into a TensorArray
n = tf.placeholder_with_default(10, shape=[])
ta = tf.TensorArray(tf.int32, size=n)
_, _, _, ta = tf.while_loop(lambda i, x, y, ta: i < n,
                            lambda i, x, y, ta: (i + 1, y, x + y, ta.write(i, x)),
                            (0, 0, 1, ta))
fib = ta.stack()

# A loop variable whose shape grows
i0, m0 = tf.constant(0), tf.ones([2, 2])
_, grown = tf.while_loop(lambda i, m: i < 5, lambda i, m: [i + 1, tf.concat([m, m * 2], axis=0)],
                         loop_vars=[i0, m0],
                         shape_invariants=[i0.get_shape(), tf.TensorShape([None, 2])])

# map_fn and scan
squares = tf.map_fn(lambda x: x * x, np.array([1, 2, 3, 4, 5, 6]))
sums = tf.scan(lambda acc, x: acc + x, tf.constant([1., 2., 3., 4.]))

with tf.Session() as sess:
    steps, vec, value = sess.run([iterations, vector, eigenvalue], feed_dict={A: sym})
    print("eigenvalue %.9f in %d iterations" % (value, steps))
    roots = [sess.run(root, {number: v}) for v in (2.0, 9.0, 1e4)]
    fib10, fib15 = sess.run(fib), sess.run(fib, {n: 15})
    grown_value, squares_value, sums_value = sess.run([grown, squares, sums])
exact = np.linalg.eigvalsh(sym)
largest = exact[np.argmax(np.abs(exact))]
