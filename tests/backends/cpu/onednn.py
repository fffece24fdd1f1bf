"""What the tests of oneDNN share."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.onednn.library import Library, find, reason

needs_onednn = pytest.mark.skipif(bool(reason()), reason=reason() or "oneDNN is here")


def instructions():
    """Whether oneDNN uses AVX-512 here, and whether instructions for products of bytes.

    They are the processor's, or fewer where ONEDNN_MAX_CPU_ISA says so.
    """
    library = find()
    assert isinstance(library, Library)
    used = ctypes.CDLL(library.path).dnnl_get_effective_cpu_isa()
    return bool(used & 0x20), bool(used & 0x48)


def data(*shape, seed=0):
    """Normal numbers as float64; both precisions are fed from them."""
    return np.random.RandomState(seed).randn(*shape)


def rows(session, fetches, feeds=None):
    """What `explain` says of each op, by op type."""
    found = session.explain(fetches, feeds).rows if feeds else session.explain(fetches).rows
    return {row.op: row for row in found}


def kernels(session, fetches, feeds=None):
    """The code that computes each op, by op type."""
    return {op: row.kernel or "" for op, row in rows(session, fetches, feeds).items()}


def close_to_float64(build, *arrays, op, rtol=2e-5, declined=""):
    """Compares `build` in float32, which oneDNN computes, with float64, which NumPy does.

    With `declined`, oneDNN leaves the op to the next kernel, and says that.
    """
    results = {}
    for dtype in (tf.float32, tf.float64):
        with tf.Graph().as_default(), tf.Session() as session:
            inputs = [tf.placeholder(dtype, a.shape) for a in arrays]
            feeds = dict(zip(inputs, arrays, strict=True))
            fetches = build(*inputs)
            results[dtype] = session.run(fetches, feeds)
            if dtype is tf.float32:
                row = rows(session, fetches, feeds)[op]
                assert ("onednn" in row.kernel) == (not declined), row
                assert any(declined in r for r in row.rejections) or not declined, row
    for ours, exact in zip(results[tf.float32], results[tf.float64], strict=True):
        scale = max(float(np.abs(exact).max(initial=0)), 1e-30)
        assert ours.dtype == np.float32 and ours.shape == exact.shape
        assert np.abs(ours - exact).max(initial=0) <= rtol * scale
