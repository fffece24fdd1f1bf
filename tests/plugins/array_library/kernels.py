"""An array library's kernels against the CPU backend's, on more windows than the suite has.

Each backend's folder has a class of tests that derives from `Kernels`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import opdock as tf


def normal(*shape):
    return np.random.RandomState(7).normal(size=shape).astype(np.float32)


class Kernels:
    """Tests of the first device of a type."""

    kind: ClassVar[str]

    def both(self, build, *arrays, rtol=1e-4):
        """What `build` gives on the CPU and on the device, from the same values."""
        found = []
        for device in ("/cpu:0", f"/device:{self.kind}:0"):
            with tf.Graph().as_default(), tf.device(device):
                fed = [tf.placeholder(tf.as_dtype(a.dtype), a.shape) for a in arrays]
                config = tf.ConfigProto(allow_soft_placement=False)
                with tf.Session(config=config) as sess:
                    found.append(sess.run(build(*fed), dict(zip(fed, arrays, strict=True))))
        for cpu, own in zip(*found, strict=True):
            np.testing.assert_allclose(own, cpu, rtol=rtol, atol=rtol)

    @pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 0], [1, 3], [0, 0]]])
    @pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (3, 1), (1, 2)])
    def test_convolution_and_its_gradients(self, padding, stride, dilation):
        def build(x, w):
            apart = [1, dilation, dilation, 1]
            y = tf.nn.conv2d(x, w, [1, stride, stride, 1], padding, dilations=apart)
            return [y, *tf.gradients(y * y, [x, w])]

        self.both(build, normal(2, 9, 8, 4), normal(3, 2, 4, 5))

    def test_groups_of_channels(self):
        self.both(
            lambda x, w: [tf.nn.conv2d(x, w, 1, "SAME")], normal(2, 6, 6, 4), normal(3, 3, 2, 6)
        )

    @pytest.mark.parametrize("multiplier", [1, 3])
    def test_depthwise_convolution_and_its_gradients(self, multiplier):
        def build(x, w):
            y = tf.nn.depthwise_conv2d_native(x, w, [1, 2, 2, 1], "SAME")
            return [y, *tf.gradients(y * y, [x, w])]

        self.both(build, normal(2, 7, 6, 4), normal(3, 3, 4, multiplier))

    @pytest.mark.parametrize("pool", [tf.nn.max_pool, tf.nn.avg_pool])
    @pytest.mark.parametrize("padding", ["SAME", "VALID"])
    @pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 1), (3, 2)])
    def test_pools_and_their_gradients(self, pool, padding, size, stride):
        def build(x):
            y = pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)
            return [y, *tf.gradients(y * y, [x])]

        self.both(build, normal(2, 7, 8, 3))

    def test_of_equal_maxima_the_first_takes_the_gradient(self):
        def build(x):
            y = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
            return [y, *tf.gradients(y, [x])]

        self.both(build, np.ones((1, 5, 5, 2), np.float32))

    @pytest.mark.parametrize("training", [True, False])
    def test_batch_norm_and_its_gradients(self, training):
        def build(x, scale, offset, mean, variance):
            known = {} if training else {"mean": mean, "variance": tf.square(variance) + 0.5}
            y, m, v = tf.nn.fused_batch_norm(x, scale, offset, is_training=training, **known)
            return [y, m, v, *tf.gradients(tf.sin(y), [x, scale, offset])]

        self.both(build, normal(4, 5, 6, 3), *(normal(3) for _ in range(4)))
