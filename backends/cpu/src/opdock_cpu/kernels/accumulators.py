"""Conditional accumulators, in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors
from opdock_cpu.accumulators import Accumulator, Dense, Slices

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


@table.binder("ConditionalAccumulator")
@table.binder("ResourceConditionalAccumulator")
@table.binder("SparseConditionalAccumulator")
def accumulator(sig: NodeSig) -> Callable[[], Any]:
    """The accumulator of a node: its own, or the one that it shares by name."""
    attrs, resources = sig.attrs, sig.resources
    name = attrs["shared_name"] or sig.name
    kind = Slices if sig.op.startswith("Sparse") else Dense
    dtype, mean = attrs["dtype"].base_dtype, attrs["reduction_type"] == "MEAN"
    assert resources is not None

    def run() -> Any:
        return resources.get_or_create(
            "accumulator", attrs["container"], name, lambda: kind(dtype, attrs["shape"], mean)
        )

    return run


def _accumulator(handle: Any, sig: NodeSig) -> Accumulator:
    found = handle.item() if isinstance(handle, np.ndarray) else handle
    if not isinstance(found, Accumulator):
        raise errors.InvalidArgumentError(
            None, None, f"{sig.op} '{sig.name}': the handle is not one of an accumulator"
        )
    dtype = sig.attrs.get("dtype")
    if dtype is not None and dtype.base_dtype is not found.dtype:
        raise errors.InvalidArgumentError(
            None, None,
            f"{sig.op} '{sig.name}': expected gradients of type {found.dtype.name}, got "
            f"{dtype.name}",
        )  # fmt: skip
    return found


@table.binder("AccumulatorNumAccumulated")
@table.binder("ResourceAccumulatorNumAccumulated")
def num_accumulated(sig: NodeSig) -> Callable[..., Any]:
    """How many gradients there are."""
    return lambda handle: np.asarray(len(_accumulator(handle, sig)), np.int32)


@table.binder("AccumulatorSetGlobalStep")
@table.binder("ResourceAccumulatorSetGlobalStep")
def set_global_step(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Moves an accumulator to a step."""

    def run(handle: Any, step: Any) -> tuple[()]:
        _accumulator(handle, sig).set_step(int(step))
        return ()

    return run


@table.binder("AccumulatorApplyGradient")
@table.binder("ResourceAccumulatorApplyGradient")
def apply_gradient(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds a tensor."""

    def run(handle: Any, step: Any, gradient: Any) -> tuple[()]:
        _accumulator(handle, sig).apply(int(step), np.asarray(gradient))
        return ()

    return run


@table.binder("SparseAccumulatorApplyGradient")
def apply_slices(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Adds slices."""
    has_shape = bool(sig.attrs["has_known_shape"])

    def run(handle: Any, step: Any, rows: Any, values: Any, shape: Any) -> tuple[()]:
        given = np.asarray(shape) if has_shape else None
        found = _accumulator(handle, sig)
        found.apply(int(step), np.asarray(rows), np.asarray(values), given)
        return ()

    return run


@table.binder("AccumulatorTakeGradient")
@table.binder("ResourceAccumulatorTakeGradient")
@table.binder("SparseAccumulatorTakeGradient")
def take_gradient(sig: NodeSig) -> Callable[..., Any]:
    """The sum or the mean, once there is enough of it."""
    resources = sig.resources
    assert resources is not None
    return lambda handle, required: _accumulator(handle, sig).take(int(required), resources.wait)
