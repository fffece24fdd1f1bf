"""One kernel for every op: its outputs have the shapes that the op's shape function says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import Kernel, KernelTable, NodeSig, OpSpec, all_ops, errors, infer_shapes
from opdock_null.device import NullBuffer, NullDevice


def table_for(device: NullDevice) -> KernelTable:
    """A kernel for each registered op, bound to one device."""
    return KernelTable(
        Kernel(op=spec.name, bind=functools.partial(_bind, device, spec)) for spec in all_ops()
    )


def _bind(device: NullDevice, spec: OpSpec, sig: NodeSig) -> Callable[..., Any]:
    types = [dtype.np for dtype in sig.out_dtypes]
    # A reference output is the variable that came in.
    refs = [arg.is_ref for arg in spec.definition.outputs]
    calls = device.ledger.kernels

    def run(*inputs: Any) -> Any:
        calls[sig.op] = calls.get(sig.op, 0) + 1
        values = [_read(i) for i in inputs]
        shapes = infer_shapes(sig, [_shape(v) for v in values], lambda i: _known(sig, values, i))
        outputs = []
        for i, dtype in enumerate(types):
            if i < len(refs) and refs[i]:
                outputs.append(inputs[0])
            else:
                outputs.append(device.allocate(_full(sig, shapes[i]), dtype))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return run


def _read(value: Any) -> Any:
    """A variable's content; anything else as it is."""
    return value.read() if hasattr(value, "read") and hasattr(value, "write") else value


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))


def _known(sig: NodeSig, values: list[Any], index: int) -> np.ndarray[Any, Any] | None:
    known = sig.const(index)
    if known is None and index < len(values):
        value = values[index]
        known = value.value if isinstance(value, NullBuffer) else np.asarray(value)
    return known


def _full(sig: NodeSig, shape: tuple[int | None, ...] | None) -> tuple[int, ...]:
    dims = () if shape is None else tuple(d for d in shape if d is not None)
    if shape is None or len(dims) != len(shape):
        raise errors.UnimplementedError(
            None,
            None,
            f"the shape of {sig.op}'s output depends on values, which a shapes-only device does "
            "not have",
        )
    return dims
