"""Small constant expressions while a graph is built, computed by the portable kernels on NumPy.

A shape may depend on one ("reshape to this product"), and no device is open yet.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opdock import errors
from opdock.graph.nodes.operation import Operation
from opdock.kernels import portable
from opdock.kernels.numpy_namespace import NumpyNamespace
from opdock.kernels.select.selection import KernelIndex, select
from opdock.kernels.select.signature import NodeSig

Array = np.ndarray[Any, Any]


def compute(op: Operation, inputs: list[Array]) -> list[Array] | None:
    """The results of a stateless op, or None when nobody can tell.

    Args:
        op: the operation.
        inputs: the values of its inputs.
    """
    sig = NodeSig(
        op=op.type,
        name=op.name,
        attrs=op.attrs,
        in_shapes=[value.shape for value in inputs],
        in_dtypes=[t.dtype for t in op.inputs],
        out_shapes=[t.raw_shape for t in op.outputs],
        out_dtypes=[t.dtype for t in op.outputs],
        consts=dict(enumerate(inputs)),
    )
    kernel = select(sig, _kernels()).kernel
    if kernel is None or kernel.bind is None:
        return None
    try:
        with np.errstate(all="ignore"):
            found = kernel.bind(sig)(*inputs, *([None] if kernel.out else []))
    except (errors.OpError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError):
        # The step that runs the op tells what is wrong with it.
        return None
    results = [found] if len(op.outputs) == 1 else list(found)
    return [np.asarray(r, t.dtype.np) for r, t in zip(results, op.outputs, strict=True)]


@functools.cache
def _kernels() -> KernelIndex:
    index = KernelIndex()
    index.add(portable.mount(NumpyNamespace(f"{__name__}.namespace")))
    return index
