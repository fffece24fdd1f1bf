"""Linear algebra people do in TF: a Gaussian process by cholesky, PCA by svd, least squares, ridge."""
import numpy as np
import opdock as tf

rng = np.random.RandomState(0)
x_train = np.sort(rng.uniform(-3, 3, 25)).reshape(-1, 1)
y_train = np.sin(x_train) + 0.05 * rng.randn(25, 1)
x_test = np.linspace(-2.5, 2.5, 11).reshape(-1, 1)


def rbf(a, b, lengthscale, variance):
    d = tf.reduce_sum(tf.square(a), 1, keepdims=True) - 2 * tf.matmul(a, b, transpose_b=True) \
        + tf.transpose(tf.reduce_sum(tf.square(b), axis=1, keepdims=True))
    return variance * tf.exp(-0.5 * d / tf.square(lengthscale))


log_l = tf.Variable(0.5, dtype=tf.float64, name='log_lengthscale')
log_v = tf.Variable(0.0, dtype=tf.float64, name='log_variance')
log_n = tf.Variable(-1.0, dtype=tf.float64, name='log_noise')
X, Y, Xs = (tf.constant(v) for v in (x_train, y_train, x_test))
K = rbf(X, X, tf.exp(log_l), tf.exp(log_v)) + tf.exp(log_n) * tf.eye(25, dtype=tf.float64)
L = tf.cholesky(K)
alpha = tf.matrix_triangular_solve(tf.matrix_transpose(L),
                                   tf.matrix_triangular_solve(L, Y), lower=False)
nll = 0.5 * tf.matmul(Y, alpha, transpose_a=True)[0, 0] \
    + tf.reduce_sum(tf.log(tf.diag_part(L))) + 12.5 * np.log(2 * np.pi)
Ks = rbf(X, Xs, tf.exp(log_l), tf.exp(log_v))
mean = tf.matmul(Ks, alpha, transpose_a=True)
v = tf.matrix_triangular_solve(L, Ks)
var = tf.exp(log_v) - tf.reduce_sum(tf.square(v), 0)
train_op = tf.train.AdamOptimizer(0.05).minimize(nll)

# PCA
data = rng.randn(80, 5).dot(np.diag([5., 3., 1., .2, .1])).dot(np.linalg.qr(rng.randn(5, 5))[0])
centered = tf.constant(data) - tf.reduce_mean(data, axis=0)
s, u, vt = tf.svd(centered)
projected = tf.matmul(u[:, :2], tf.diag(s[:2]))
eigenvalues, _ = tf.self_adjoint_eig(tf.matmul(centered, centered, transpose_a=True))

# Normal equations
design = tf.concat([tf.ones([25, 1], tf.float64), X, X ** 2, X ** 3], axis=1)
gram = tf.matmul(tf.transpose(design), design)
by_inverse = tf.matmul(tf.matmul(tf.matrix_inverse(gram), tf.transpose(design)), Y)
by_solve = tf.matrix_solve(gram, tf.matmul(design, Y, transpose_a=True))
by_cholesky = tf.cholesky_solve(tf.cholesky(gram), tf.matmul(design, Y, transpose_a=True))
by_ls = tf.matrix_solve_ls(design, Y, fast=False)
det, trace = tf.matrix_determinant(gram), tf.trace(gram)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    history = []
    for i in range(80):
        _, value = sess.run([train_op, nll])
        history.append(value)
    m, variance, noise = sess.run([mean, var, tf.exp(log_n)])
    coefficients = sess.run([by_inverse, by_solve, by_cholesky, by_ls])
    scores, singular, eig = sess.run([projected, s, eigenvalues])
    det_value, trace_value, gram_value = sess.run([det, trace, gram])
print('nll %.3f -> %.3f, noise %.4f' % (history[0], history[-1], noise))
