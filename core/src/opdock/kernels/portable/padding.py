"""Portable kernels of constant and mirrored margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dims, fails, full, invalid, is_traced, put
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def margins(paddings: Any, rank: int) -> list[tuple[int, int]]:
    """The margins as pairs.

    Raises:
        InvalidArgumentError: they are negative or there is not one pair per dimension.
    """
    values = np.asarray(paddings)
    if values.shape != (rank, 2):
        raise invalid(
            f"The first dimension of paddings must be the rank of inputs: {dims(values.shape)}, "
            f"rank {rank}"
        )
    if (values < 0).any():
        raise invalid(f"Paddings must be non-negative: {values.tolist()}")
    return [(int(a), int(b)) for a, b in values]


@portable("Pad", "PadV2", host_inputs=("paddings",), traced="paddings")
def pad(xp: Any, sig: NodeSig) -> Any:
    """The input within a margin of one value."""
    dtype = sig.out_dtypes[0]

    def moving(tensor: Any, paddings: Any, value: Any) -> Any:
        shape = sig.out_shapes[0]
        if shape is None or None in shape:
            raise NotImplementedError("the shape of the padded tensor depends on values")
        whole = xp.sum(paddings, axis=1) + xp.asarray(tensor.shape, dtype=paddings.dtype)
        fits = xp.all(whole == xp.asarray(shape, dtype=paddings.dtype)) & xp.all(paddings >= 0)
        fails(xp, ~fits)
        out = full(xp, shape, 0, dtype, tensor)
        if value is not None:
            out = put(xp, out, ..., value)
        return xp.set_part(out, [paddings[i, 0] for i in range(len(shape))], tensor)

    def run(tensor: Any, paddings: Any, value: Any = None) -> Any:
        if is_traced(xp, paddings):
            return moving(tensor, paddings, value)
        pairs = margins(paddings, len(tensor.shape))
        shape = tuple(d + a + b for d, (a, b) in zip(tensor.shape, pairs, strict=True))
        out = full(xp, shape, 0, dtype, tensor)
        if value is not None:
            out = put(xp, out, ..., value)
        return put(xp, out, inner(tensor.shape, pairs), tensor)

    return run


def inner(shape: Any, pairs: list[tuple[int, int]]) -> tuple[slice, ...]:
    """Where the input lies in the padded tensor."""
    return tuple(slice(a, a + d) for d, (a, _) in zip(shape, pairs, strict=True))


def _mirror_limit(mode: str, size: int) -> int:
    return size if mode == "SYMMETRIC" else size - 1


@portable("MirrorPad", host_inputs=("paddings",))
def mirror_pad(xp: Any, sig: NodeSig) -> Any:
    """The input within a margin that mirrors it."""
    mode = sig.attrs["mode"]
    skip = 0 if mode == "SYMMETRIC" else 1

    def run(tensor: Any, paddings: Any) -> Any:
        out = tensor
        for axis, (before, after) in enumerate(margins(paddings, len(tensor.shape))):
            size = tensor.shape[axis]
            check_mirror(mode, size, before, after)
            lead = (slice(None),) * axis
            head = out[(*lead, slice(skip, skip + before), ...)]
            tail = out[(*lead, slice(size - skip - after, size - skip), ...)]
            out = xp.concat([xp.flip(head, axis=axis), out, xp.flip(tail, axis=axis)], axis=axis)
        return xp.asarray(out, copy=True) if out is tensor else out

    return run


def check_mirror(mode: str, size: int, before: int, after: int) -> None:
    """Raises InvalidArgumentError unless a dimension is long enough for mirrored margins."""
    limit = _mirror_limit(mode, size)
    if before > limit or after > limit:
        bound = "no greater" if mode == "SYMMETRIC" else "less"
        raise invalid(
            f"paddings must be {bound} than the dimension size: {before}, {after} "
            f"{'greater' if mode == 'SYMMETRIC' else 'not less'} than {size}"
        )


@portable("MirrorPadGrad", T=dtypes.NUMBERS, host_inputs=("paddings",))
def mirror_pad_grad(xp: Any, sig: NodeSig) -> Any:
    """The inner part, with the mirrored margins folded back onto it."""
    mode = sig.attrs["mode"]
    skip = 0 if mode == "SYMMETRIC" else 1

    def run(grad: Any, paddings: Any) -> Any:
        out = grad
        for axis, (before, after) in enumerate(margins(paddings, len(grad.shape))):
            size = grad.shape[axis] - before - after
            check_mirror(mode, size, before, after)
            lead = (slice(None),) * axis
            core = xp.asarray(out[(*lead, slice(before, before + size), ...)], copy=True)
            if before:
                head = (*lead, slice(skip, skip + before), ...)
                flipped = xp.flip(out[(*lead, slice(0, before), ...)], axis=axis)
                core = put(xp, core, head, flipped, add=True)
            if after:
                tail = (*lead, slice(size - skip - after, size - skip), ...)
                end = (*lead, slice(before + size, before + size + after), ...)
                core = put(xp, core, tail, xp.flip(out[end], axis=axis), add=True)
            out = core
        return xp.asarray(out, copy=True) if out is grad else out

    return run
