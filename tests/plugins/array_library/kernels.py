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

    @pytest.mark.parametrize("bad", [-1, 5, -6, 2**31 - 1])
    @pytest.mark.parametrize("axis", [0, 1])
    def test_a_gather_says_which_index_is_out_of_range(self, bad, axis):
        x, indices = tf.placeholder(tf.float32, (5, 5)), tf.placeholder(tf.int32, (3,))
        with tf.device(f"/device:{self.kind}:0"):
            slices = tf.gather(x, indices, axis=axis, name="slices")
            cells = tf.gather_nd(x, tf.stack([indices, indices * 0], 1), name="cells")
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as sess:
            feed = {x: np.ones((5, 5), np.float32), indices: [0, bad, 1]}
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                sess.run(slices, feed)
            assert f"indices[1] = {bad} is not in [0, 5)" in e.value.message
            assert e.value.op.name.startswith("slices")
            with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into param"):
                sess.run(cells, feed)

    def test_gathers_of_few_and_many_indices(self):
        def build(x, i):
            pairs = tf.stack([i, i[::-1]], -1)
            cells = [tf.gather_nd(x, p) for p in (pairs, pairs[0], pairs[:, :1], pairs[:0])]
            rows = [tf.gather(x, p, axis=a) for p in (i, i[0], pairs, i[:0]) for a in (0, 1)]
            return [*cells, *rows]

        self.both(build, normal(4, 4), np.array([2, 0, 3, 3], np.int32))

    def test_the_largest_elements_with_equal_ones_and_nan(self):
        distinct = normal(3, 9)
        x = np.float32([[0, -0.0, 1, np.nan, 1, -np.inf, np.nan, np.inf, 0]])

        def build(*arrays):
            return [part for a in arrays for k in (0, 1, 4, 9) for part in tf.nn.top_k(a, k)]

        self.both(
            build, distinct, x, x.astype(np.float64), np.int32([[3, 3, -1, 7, 7, 0, 3, 2, 1]])
        )

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
    def test_sums_of_segments_leave_negative_ids_out(self, dtype):
        ids = np.array([3, -1, 0, 3, 3, -2], np.int32)

        def build(x, ids):
            return [
                tf.unsorted_segment_sum(x, ids, 5), tf.unsorted_segment_sum(x, abs(ids), 5),
                tf.unsorted_segment_max(x, ids, 5), tf.unsorted_segment_prod(x, ids, 5),
                tf.unsorted_segment_sum(x[:0], ids[:0], 2),
            ]  # fmt: skip

        self.both(build, (normal(6, 2) * 4).astype(dtype), ids, rtol=1e-3)

    def test_a_label_out_of_range_spoils_its_row_alone(self):
        def build(x, labels):
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
            return [loss, *tf.gradients(loss, [x])]

        with tf.Graph().as_default(), tf.device(f"/device:{self.kind}:0"), tf.Session() as sess:
            x, labels = tf.placeholder(tf.float32, (3, 4)), tf.placeholder(tf.int32, (3,))
            loss, back = sess.run(build(x, labels), {x: normal(3, 4), labels: [1, 4, -1]})
        assert np.isnan(loss).tolist() == np.isnan(back).any(1).tolist() == [False, True, True]
        assert np.isnan(back[1:]).all()
        self.both(build, normal(3, 4), np.array([1, 0, 3], np.int32))

    def test_functions_of_special_values(self):
        x = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 2.5, -7, 1e-40, 3e38, -1e-3])

        def build(x):
            y = x[::-1]
            return [
                tf.sign(x), tf.truncatemod(x, y), tf.nn.relu(x), tf.nn.relu6(x), tf.reciprocal(x),
                tf.cumprod(x[3:]), tf.cumprod(x[3:], exclusive=True, reverse=True),
            ]  # fmt: skip

        self.both(build, np.where(np.abs(x) < 1e-30, np.float32(0), x))
