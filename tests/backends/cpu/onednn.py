"""What the tests of oneDNN share."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.onednn.library import reason

needs_onednn = pytest.mark.skipif(bool(reason()), reason=reason() or "oneDNN is here")


def data(*shape, seed=0):
    """Normal numbers as float64; both precisions are fed from them."""
    return np.random.RandomState(seed).randn(*shape)


def kernels(session, fetches, feeds=None):
    """The code that computes each op, by op type."""
    rows = session.explain(fetches, feeds).rows if feeds else session.explain(fetches).rows
    return {row.op: row.kernel or "" for row in rows}


def close_to_float64(build, *arrays, op, rtol=2e-5):
    """Compares `build` in float32, which oneDNN computes, with float64, which NumPy does."""
    results = {}
    for dtype in (tf.float32, tf.float64):
        with tf.Graph().as_default(), tf.Session() as session:
            inputs = [tf.placeholder(dtype, a.shape) for a in arrays]
            feeds = dict(zip(inputs, arrays, strict=True))
            fetches = build(*inputs)
            results[dtype] = session.run(fetches, feeds)
            if dtype is tf.float32:
                assert "onednn" in kernels(session, fetches, feeds)[op]
    for ours, exact in zip(results[tf.float32], results[tf.float64], strict=True):
        scale = max(float(np.abs(exact).max(initial=0)), 1e-30)
        assert ours.dtype == np.float32 and ours.shape == exact.shape
        assert np.abs(ours - exact).max(initial=0) <= rtol * scale
