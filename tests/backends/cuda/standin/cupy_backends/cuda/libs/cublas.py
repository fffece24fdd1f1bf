"""cuBLAS as it reads memory: columns first, leading dimensions, strides between matrices."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
from cupy import cuda

TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16, 4: np.complex64,
         5: np.complex128}  # fmt: skip
COMPUTED = []
"""The compute type of every call."""


def setStream(handle, stream):
    assert stream == cuda.get_current_stream().ptr


def _matrices(address, dtype, rows, columns, leading, step, count):
    assert leading >= max(1, rows), (leading, rows)
    size = np.dtype(dtype).itemsize
    extent = (count - 1) * step + (columns - 1) * leading + rows
    flat = np.frombuffer((ctypes.c_char * (extent * size)).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(
        flat, (count, rows, columns), (step * size, size, leading * size)
    )


def gemmStridedBatchedEx(
    handle, opa, opb, m, n, k, alpha, a, a_type, lda, a_step, b, b_type, ldb, b_step,
    beta, c, c_type, ldc, c_step, count, compute, algorithm,
):  # fmt: skip
    assert a_type == b_type == c_type and m and n and k
    dtype = TYPES[c_type]
    wide = {2: np.float32, 14: np.float32}.get(c_type, dtype)
    one, more = (np.ctypeslib.as_array(
        (ctypes.c_char * np.dtype(wide).itemsize).from_address(p)).view(wide)[0].copy()
        for p in (alpha, beta))  # fmt: skip
    COMPUTED.append(compute)

    def work():
        left = _matrices(a, dtype, *((k, m) if opa else (m, k)), lda, a_step, count)
        right = _matrices(b, dtype, *((n, k) if opb else (k, n)), ldb, b_step, count)
        out = _matrices(c, dtype, m, n, ldc, c_step, count)
        left = left.astype(wide).swapaxes(1, 2) if opa else left.astype(wide)
        right = right.astype(wide).swapaxes(1, 2) if opb else right.astype(wide)
        left = left.conj() if opa == 2 else left
        right = right.conj() if opb == 2 else right
        product = one * np.matmul(left, right)
        out[...] = (product + more * out.astype(wide) if more else product).astype(dtype)

    cuda.enqueue(work)
