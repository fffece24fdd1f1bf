"""Training for quantization; the expected values are TensorFlow's own."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import opdock as tf

X = np.array([-3.3, -1.5, -0.25, 0.0, 0.1, 1.27, 2.0, 9.0], np.float32)
ROWS = X.reshape(4, 2)
LOWS, HIGHS = np.array([-1.0, -3.0], np.float32), np.array([1.0, 0.5], np.float32)


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def same(found, expected):
    np.testing.assert_array_equal(found, np.array(expected, np.float32).reshape(found.shape))


def test_args():
    found = run(tf.fake_quant_with_min_max_args(X, -1.5, 2.5, num_bits=4))
    same(found, [-1.6000001, -1.6000001, -0.26666668, 0, 0, 1.3333334, 2.1333334, 2.4])


def test_vars():
    found = run(tf.fake_quant_with_min_max_vars(X, -1.5, 2.5, num_bits=3, narrow_range=True))
    same(found, [-1.3333334, -1.3333334, 0, 0, 0, 1.3333334, 2, 2.6666667])
    assert not run(tf.fake_quant_with_min_max_vars(X, 0.0, 0.0)).any()


def test_vars_per_channel():
    found = run(tf.fake_quant_with_min_max_vars_per_channel(ROWS, LOWS, HIGHS, num_bits=4))
    same(
        found,
        [-0.9333334, -1.4, -0.26666668, 0, 0.13333334, 0.46666667, 1.0666667, 0.46666667],
    )


def test_gradients():
    x, low, high = tf.constant(X), tf.constant(-1.5), tf.constant(2.5)
    y = tf.fake_quant_with_min_max_vars(x, low, high)
    inner, below, above = run(tf.gradients(y, [x, low, high], grad_ys=x))
    same(inner, [0, -1.5, -0.25, 0, 0.1, 1.27, 2, 0])
    same(np.array([below, above]), [-3.3, 9])
    y = tf.fake_quant_with_min_max_args(x, -1.5, 2.5)
    same(run(tf.gradients(y, x, grad_ys=x))[0], [0, -1.5, -0.25, 0, 0.1, 1.27, 2, 0])


def test_gradients_per_channel():
    x, low, high = tf.constant(ROWS), tf.constant(LOWS), tf.constant(HIGHS)
    y = tf.fake_quant_with_min_max_vars_per_channel(x, low, high, num_bits=4)
    inner, below, above = run(tf.gradients(y, [x, low, high], grad_ys=x))
    same(inner, [0, -1.5, -0.25, 0, 0.1, 0, 0, 0])
    same(below, [-3.3, 0])
    np.testing.assert_allclose(above, [2, 10.27], rtol=1e-6)


def test_quantize_and_dequantize():
    found = tf.quantization.quantize_and_dequantize(X, -1.5, 2.5, range_given=True, num_bits=4)
    expected = [-2.857143, -1.4285715, -0.35714287, 0, 0, 1.4285715, 2.142857, 2.5]
    np.testing.assert_allclose(run(found), expected, rtol=1e-6)
    own = tf.quantization.quantize_and_dequantize(X, 0.0, 0.0, num_bits=4, round_mode="HALF_UP")
    expected = [-3.857143, -1.2857143, 0, 0, 0, 1.2857143, 2.5714285, 9]
    np.testing.assert_allclose(run(own), expected, rtol=1e-6)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_the_gradient_passes_straight_through(version):
    x = tf.constant(X)
    op = getattr(tf.raw_ops, f"QuantizeAndDequantize{version}")
    if version == "":
        y = op(input=x, input_min=-1.0, input_max=1.0, range_given=True)
        rest = []
    else:
        rest = [tf.constant(-1.0), tf.constant(1.0)]
        more = {"num_bits": 8} if version == "V3" else {}
        y = op(input=x, input_min=rest[0], input_max=rest[1], range_given=True, **more)
    grads = tf.gradients(y, [x, *rest], grad_ys=2 * x)
    assert grads[1:] == [None] * len(rest)
    same(run(grads[0]), 2 * X)


def test_the_versions_agree():
    ends = {"range_given": True, "signed_input": False}
    first = tf.raw_ops.QuantizeAndDequantize(input=X, input_min=0.0, input_max=2.0, **ends)
    second = tf.raw_ops.QuantizeAndDequantizeV2(input=X, input_min=0.0, input_max=2.0, **ends)
    third = tf.raw_ops.QuantizeAndDequantizeV3(
        input=X, input_min=0.0, input_max=2.0, num_bits=8, **ends
    )
    a, b, c = run([first, second, third])
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, c)


@hypothesis.given(
    st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=20),
    st.floats(-8, 0, width=32), st.floats(0.125, 8, width=32), st.integers(2, 12), st.booleans(),
)  # fmt: skip
def test_what_is_on_the_grid_stays_there(values, low, high, bits, narrow):
    with tf.Graph().as_default():
        once = tf.fake_quant_with_min_max_args(values, low, high, bits, narrow)
        twice = tf.fake_quant_with_min_max_args(once, low, high, bits, narrow)
        zero = tf.fake_quant_with_min_max_args([0.0], low, high, bits, narrow)
        first, second, middle = run([once, twice, zero])
    step = (high - low) / (2**bits - 1 - narrow)
    np.testing.assert_allclose(second, first, atol=1e-3 * step + 1e-6)
    assert middle == 0 and len(np.unique(first)) <= 2**bits
    inside = np.clip(values, low, high)
    assert (abs(first - inside) <= 1.01 * step + 1e-5).all()


def test_errors():
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
        tf.fake_quant_with_min_max_vars_per_channel(ROWS, 0.0, 1.0)
    wrong = tf.fake_quant_with_min_max_args(X, 1.0, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="min has to be smaller than max"):
        run(wrong)
    wide = tf.fake_quant_with_min_max_vars(X, 0.0, 1.0, num_bits=17)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_bits must be between 2 and 16"):
        run(wide)
