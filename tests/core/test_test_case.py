"""`tf.test.TestCase`."""

from __future__ import annotations

import numpy as np

import opdock as tf


class Example(tf.test.TestCase):
    def test_the_test_case(self):
        with self.cached_session() as session:
            x = tf.constant([1.0, 2.0])
            self.assertAllClose(x * 2, [2, 4])
            self.assertAllEqual(tf.constant(["a"]), ["a"])
            self.assertNotAllClose(x, [1, 3])
            self.assertAllInSet(x, [1.0, 2.0, 3.0])
            with self.assertRaises(AssertionError):
                self.assertAllEqual(x, [1, 3])
            with self.assertRaisesOpError("assertion failed"):
                session.run(tf.Assert(tf.reduce_any(x > 5), [x]))
            error = tf.test.compute_gradient_error(
                x, [2], x * x, [2], x_init_value=np.array([1.0, 2.0])
            )
            self.assertLess(error, 1e-2)
        with self.session(use_gpu=True):
            self.assertEqual(self.evaluate(tf.constant(3)), 3)
        self.assertTrue(self.get_temp_dir())
        self.assertIn(tf.test.is_gpu_available(), (True, False))
