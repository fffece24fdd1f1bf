"""Partial differential equation: rain drops on a pond (wave equation with damping)."""
import numpy as np
import opdock as tf


def make_kernel(a):
    """Transform a 2D array into a convolution kernel"""
    a = np.asarray(a)
    a = a.reshape(list(a.shape) + [1, 1])
    return tf.constant(a, dtype=1)


def simple_conv(x, k):
    """A simplified 2D convolution operation"""
    x = tf.expand_dims(tf.expand_dims(x, 0), -1)
    y = tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], padding='SAME')
    return y[0, :, :, 0]


def laplace(x):
    """Compute the 2D laplacian of an array"""
    laplace_k = make_kernel([[0.5, 1.0, 0.5],
                             [1.0, -6., 1.0],
                             [0.5, 1.0, 0.5]])
    return simple_conv(x, laplace_k)


N = 60
sess = tf.InteractiveSession()

# Initial conditions: some rain drops hit a pond at random points
u_init = np.zeros([N, N], dtype=np.float32)
ut_init = np.zeros([N, N], dtype=np.float32)
np.random.seed(0)
for n in range(12):
    a, b = np.random.randint(0, N, 2)
    u_init[a, b] = np.random.uniform()

eps = tf.placeholder(tf.float32, shape=())
damping = tf.placeholder(tf.float32, shape=())

U = tf.Variable(u_init)
Ut = tf.Variable(ut_init)

# Discretized PDE update rules
U_ = U + eps * Ut
Ut_ = Ut + eps * (laplace(U) - damping * Ut)

# Operation to update the state
step = tf.group(
    U.assign(U_),
    Ut.assign(Ut_))

tf.global_variables_initializer().run()
for i in range(100):
    step.run({eps: 0.03, damping: 0.04})
pond, speed = U.eval(), Ut.eval()
sess.close()

# The same in numpy
kernel = np.array([[0.5, 1.0, 0.5], [1.0, -6., 1.0], [0.5, 1.0, 0.5]])
u, ut = u_init.astype(np.float64), ut_init.astype(np.float64)
for i in range(100):
    padded = np.pad(u, 1)
    lap = sum(kernel[r, c] * padded[r:r + N, c:c + N] for r in range(3) for c in range(3))
    u, ut = u + 0.03 * ut, ut + 0.03 * (lap - 0.04 * ut)
