"""Reductions of large arrays in generated code: one pass, in this process's own team of threads.

NumPy's BLAS would wake threads of its own, which go on looking for work for a while on the cores
that the next op needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, Kernel, KernelTable, NodeSig, axes, codegen, dtypes, errors
from opdock_cpu.jit import llvm
from opdock_cpu.jit.generated import Generated, folds_well, in_buffer, layout_of
from opdock_cpu.kernels import bias as numpy_bias
from opdock_cpu.kernels import loss as numpy_loss
from opdock_cpu.kernels import reduce as numpy_reduce

__all__ = ["table"]

table = KernelTable()
_PRIORITY: Final = 20
_LARGE: Final = 1 << 13
"""Elements from which BLAS uses several threads."""
_WIDE: Final = 16
"""Elements of the last dimension from which the loop over it pays."""
_KEPT: Final = 32
_FLOATS: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})
_BLAS: Final = frozenset({dtypes.float32, dtypes.float64})
_SQUARES: Final = {"L2Loss": "x * x * 0.5", "EuclideanNorm": "x * x"}
"""What is summed by ops that do not add up the elements as they are."""
_KINDS: Final = {
    "Sum": "sum", "Mean": "mean", "Max": "max", "Min": "min", "Prod": "prod",
    "EuclideanNorm": "sum",
}  # fmt: skip
"""How elements are folded by ops that are told along which axes."""
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def _pays(shape: Shape, axes: Shape) -> bool | str:
    if math.prod(shape) < _LARGE:
        return "few elements"
    if layout_of([shape], shape, [axes])[1][-1] < _WIDE:
        return "few elements in the last dimension"
    return folds_well([shape], shape, [axes]) or "as many results as elements"


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    shape = sig.in_shapes[0]
    if shape is None or None in shape:
        return True
    known = tuple(n or 0 for n in shape)
    axes = _axes(sig, None if sig.op not in _KINDS else sig.const(1), len(known))
    if axes is None:
        return math.prod(known) >= _LARGE or "few elements"
    return _pays(known, axes)


def _axes(sig: NodeSig, indices: Any, rank: int) -> Shape | None:
    """The axes that go; None where they are not known, or are no axes."""
    if sig.op == "L2Loss":
        return tuple(range(rank))
    if sig.op == "BiasAddGrad":
        channel = 1 if sig.attrs["data_format"] == "NCHW" else rank - 1
        return tuple(a for a in range(rank) if a != channel)
    if indices is None:
        return None
    try:
        return axes.reduced(indices, rank)
    except errors.OpError:
        return None


def _plain(sig: NodeSig) -> Callable[..., Any]:
    """NumPy's kernel, as a function of the inputs."""
    dtype = sig.in_dtypes[0].base_dtype
    kernel = next(
        k for k in (*numpy_reduce.table, *numpy_bias.table, *numpy_loss.table)
        if k.op == sig.op and dtype in k.dtypes["T"]
    )  # fmt: skip
    assert kernel.bind is not None
    run = kernel.bind(sig)
    return (lambda *inputs: run(*inputs, None)) if kernel.out else run


def _code(sig: NodeSig, dtype: DType, shape: Shape, axes: Shape) -> Generated:
    text = _SQUARES.get(sig.op, "x")
    line = codegen.lower([codegen.parse(text)], {"x": dtype}, results=[dtype])
    keep = bool(sig.attrs.get("keep_dims", False))
    result = tuple(
        1 if a in axes else n for a, n in enumerate(shape) if keep or a not in axes
    )  # fmt: skip
    reduce = codegen.Reduce(_KINDS.get(sig.op, "sum"), axes, keep)
    return Generated(line, ("x",), [(dtype, shape)], shape, [(dtype, result)], [reduce])


def _bind(sig: NodeSig) -> Callable[..., Any]:
    plain, dtype = _plain(sig), sig.in_dtypes[0].base_dtype
    constant = sig.const(1) if sig.op in _KINDS else None
    root = sig.op == "EuclideanNorm"
    made: dict[Any, Generated | None] = {}

    def code_for(shape: Shape, indices: Any) -> Generated | None:
        axes = _axes(sig, indices, len(shape))
        if axes is None or _pays(shape, axes) is not True:
            return None
        return _code(sig, dtype, shape, axes)

    def run(x: Array, *rest: Any) -> Any:
        *indices, out = rest
        key: Any = x.shape
        if indices and constant is None:
            key = (x.shape, np.asarray(indices[0]).tobytes())
        if key not in made:
            if len(made) >= _KEPT:
                made.clear()
            made[key] = code_for(x.shape, *indices or (None,))
        code = made[key]
        if code is not None and code.ready:
            found = code((x,), None if out is None else (out,))[0]
            return np.sqrt(found, found) if root else found
        return in_buffer(plain(x, *indices), out)

    return run


for _op in (*_KINDS, "BiasAddGrad", "L2Loss"):
    table.add(
        Kernel(
            op=_op, bind=_bind, when=_when, priority=_PRIORITY, out=True,
            # In 16 bits squares would be rounded.
            dtypes={"T": _BLAS if _op in _SQUARES or _op not in _KINDS else _FLOATS},
            host_inputs=frozenset({"reduction_indices"} if _op in _KINDS else ()),
        )
    )  # fmt: skip
