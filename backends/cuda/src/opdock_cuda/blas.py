"""Matrix products by cuBLAS: batches at a stride, any transposition, float32 without TF32."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import cupy
import numpy as np
from cupy_backends.cuda.libs import cublas

from opdock.plugin import as_dtype

__all__ = ["Handle", "Matrices", "gemm", "multiply"]

# cudaDataType_t and cublasComputeType_t: numbers of CUDA's interface, the same in every release.
_DATA: Final = {
    "float32": 0, "float64": 1, "float16": 2, "bfloat16": 14, "complex64": 4, "complex128": 5,
}  # fmt: skip
_COMPUTE: Final = {"float64": 70, "complex128": 70}
_COMPUTE_F32: Final = 68
_COMPUTE_TF32: Final = 77
_DEFAULT_ALGORITHM: Final = -1
_SCALAR: Final = {"float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}


@dataclass(frozen=True, slots=True)
class Matrices:
    """A batch of matrices at a fixed step in memory.

    Attributes:
        data: the array that holds them, contiguous.
        rows, columns: of each as it is used.
        leading: elements from one row in memory to the next.
        turned: whether the matrices in memory are to be taken transposed.
        step: elements from one matrix to the next; 0 uses one again and again.
        offset: the first element.
        conjugate: whether a transposed matrix is to be conjugated as well.
    """

    data: Any
    rows: int
    columns: int
    leading: int
    turned: bool = False
    step: int = 0
    offset: int = 0
    conjugate: bool = False

    @property
    def operation(self) -> int:
        """CUBLAS_OP_N, _T or _C."""
        return 0 if not self.turned else 2 if self.conjugate else 1


class Handle:
    """A lock around the thread's cuBLAS handle, whose mode is set call by call."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> int:
        self._lock.acquire()
        handle = int(cupy.cuda.get_cublas_handle())
        # The handle belongs to the thread and follows its stream only when told to.
        cublas.setStream(handle, cupy.cuda.get_current_stream().ptr)
        return handle

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def gemm(handle: Handle, a: Matrices, b: Matrices, out: Any, add: bool, tf32: bool) -> None:
    """`out = a @ b`, or `out += a @ b`.

    Args:
        handle: cuBLAS.
        a, b: the factors.
        out: a contiguous batch of results.
        add: whether the product is added to what `out` holds.
        tf32: whether float32 factors may be rounded to 10 bits.
    """
    name = as_dtype(out.dtype).name
    m, n, k = a.rows, b.columns, a.columns
    count = out.size // (m * n)
    kind, size = _DATA[name], out.dtype.itemsize
    compute = _COMPUTE.get(name, _COMPUTE_TF32 if tf32 and name == "float32" else _COMPUTE_F32)
    # Scalars are read from host memory when the call is made.
    scalars: np.ndarray[Any, Any] = np.array([1, 1 if add else 0], _SCALAR.get(name, np.float32))
    one = scalars.ctypes.data
    beta = one + scalars.itemsize
    left, right = (cupy.ascontiguousarray(x.data) for x in (a, b))
    with handle as library:
        # cuBLAS counts columns first, where a row-major matrix is its own transpose.
        cublas.gemmStridedBatchedEx(
            library, b.operation, a.operation, n, m, k, one,
            right.data.ptr + b.offset * size, kind, b.leading, b.step,
            left.data.ptr + a.offset * size, kind, a.leading, a.step,
            beta, out.data.ptr, kind, n, m * n, count, compute, _DEFAULT_ALGORITHM,
        )  # fmt: skip


def multiply(device: Any, a: Any, b: Any, out: Any, add: bool) -> bool:
    """The products of `opdock_ckernels.product.Factor`s; False for what cuBLAS lacks."""
    # Batches as long as the result's are paired each with its like.
    count = out.size // (a.rows * b.columns)
    if as_dtype(out.dtype).name not in _DATA or not a.batch == b.batch == count:
        return False
    device.gemm(_matrices(a), _matrices(b), out, add)
    return True


def _matrices(factor: Any) -> Matrices:
    columns = max(factor.steps)
    # A single column in memory has both steps 1; as a row of several elements it is a transpose.
    turned = factor.steps[0] == 1 and (columns > 1 or factor.columns > 1)
    return Matrices(
        factor.data, factor.rows, factor.columns, columns, turned, factor.step, factor.offset
    )
