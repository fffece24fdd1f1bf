"""The Mandelbrot set with complex64 variables and a boolean mask."""
import opdock as tf
import numpy as np

sess = tf.InteractiveSession()

# A 2D array of complex numbers
Y, X = np.mgrid[-1.3:1.3:0.05, -2:1:0.05]
Z = X + 1j * Y

xs = tf.constant(Z.astype(np.complex64))
zs = tf.Variable(xs)
ns = tf.Variable(tf.zeros_like(xs, tf.float32))

tf.global_variables_initializer().run()

# z^2 + x, and where it has not diverged yet
zs_ = zs * zs + xs
not_diverged = tf.abs(zs_) < 4

# A diverged point goes on being computed: cheap enough
step = tf.group(
    zs.assign(tf.where(not_diverged, zs_, zs)),
    ns.assign_add(tf.cast(not_diverged, tf.float32))
)

for i in range(60):
    step.run()

counts = ns.eval()


def DisplayFractal(a):
    """An array of iteration counts as a colorful picture (here only the pixels)."""
    a_cyclic = (6.28 * a / 20.0).reshape(list(a.shape) + [1])
    img = np.concatenate([10 + 20 * np.cos(a_cyclic),
                          30 + 50 * np.sin(a_cyclic),
                          155 - 80 * np.cos(a_cyclic)], 2)
    img[a == a.max()] = 0
    return np.uint8(np.clip(img, 0, 255))


picture = DisplayFractal(counts)
sess.close()

c = Z.astype(np.complex64)
z, expected = c.copy(), np.zeros(c.shape, np.float32)
for i in range(60):
    new = z * z + c
    alive = np.abs(new) < 4
    z = np.where(alive, new, z)
    expected += alive
