"""Convolution as matrix products over unfolded windows; channels last, any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import windows
from opdock_cpu.windows import pad, positions, unpad

__all__ = ["conv_backward_data", "conv_backward_filter", "conv_forward"]

Array = npt.NDArray[Any]

BLOCK_BYTES = 4 << 20
"""About how much unfolded input to hold at a time: it should stay in the last-level cache."""


_PLANE = 4
"""Elements of a plane, by output, from which adding up a product for each plane costs little."""


def _blocks(where: windows.Window, batch: int, row_bytes: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of (batch entries, first output dimension) whose unfolded size is about the limit."""
    image = row_bytes * math.prod(where.out)
    if image <= BLOCK_BYTES or batch == 0:
        step = max(1, BLOCK_BYTES // max(image, 1))
        for start in range(0, batch, step):
            yield slice(start, min(start + step, batch)), slice(0, where.out[0])
        return
    line = row_bytes * math.prod(where.out[1:])
    step = max(1, BLOCK_BYTES // max(line, 1))
    for entry in range(batch):
        for start in range(0, where.out[0], step):
            yield slice(entry, entry + 1), slice(start, min(start + step, where.out[0]))


def _unfolded(padded: Array, where: windows.Window) -> Iterator[tuple[tuple[slice, slice], Array]]:
    """Blocks of the input with each window as one row."""
    view = positions(padded, where)
    width = math.prod(where.window) * padded.shape[-1]
    buffer = np.empty(0, padded.dtype)
    for block in _blocks(where, padded.shape[0], width * padded.itemsize):
        part = view[block]
        if part.size > buffer.size:
            buffer = np.empty(part.size, padded.dtype)
        rows = buffer[: part.size].reshape(part.shape)
        np.copyto(rows, part)
        yield block, rows.reshape(math.prod(part.shape[: 1 + len(where.out)]), width)


def _groups(x: Array, filter_channels: int) -> int:
    return 1 if filter_channels == 0 else x.shape[-1] // filter_channels


def conv_forward(x: Array, kernel: Array, where: windows.Window) -> Array:
    """Cross-correlation of `x` [batch, *space, channels] with `kernel` [*window, in, out].

    When `x` has a multiple of the kernel's channels, each group of channels has its own share of
    the outputs.
    """
    groups = _groups(x, kernel.shape[-2])
    if groups > 1:
        share = kernel.shape[-1] // groups
        xs = np.split(x, groups, axis=-1)
        parts = [
            conv_forward(part, kernel[..., i * share : (i + 1) * share], where)
            for i, part in enumerate(xs)
        ]
        return np.concatenate(parts, axis=-1)
    matrix = np.ascontiguousarray(kernel).reshape(math.prod(kernel.shape[:-1]), kernel.shape[-1])
    out = np.empty((x.shape[0], *where.out, kernel.shape[-1]), x.dtype)
    if where.is_pointwise:
        rows = np.ascontiguousarray(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
        np.matmul(rows, matrix, out=out.reshape(rows.shape[0], out.shape[-1]))
        return out
    padded = pad(np.ascontiguousarray(x) if not where.is_padded else x, where)
    for block, rows in _unfolded(padded, where):
        # A block covers whole output rows, so its part of the output is contiguous.
        np.matmul(rows, matrix, out=out[block].reshape(rows.shape[0], out.shape[-1]))
    return out


def conv_backward_data(grad: Array, kernel: Array, where: windows.Window, channels: int) -> Array:
    """The gradient of `conv_forward` with respect to `x`."""
    inner = kernel.shape[-2]
    groups = 1 if inner == 0 else channels // inner
    if groups > 1:
        share = kernel.shape[-1] // groups
        parts = [
            conv_backward_data(
                grad[..., i * share : (i + 1) * share], kernel[..., i * share : (i + 1) * share],
                where, inner,
            )
            for i in range(groups)
        ]  # fmt: skip
        return np.concatenate(parts, axis=-1)
    grad = np.ascontiguousarray(grad)
    if where.is_pointwise:
        rows = grad.reshape(math.prod(grad.shape[:-1]), grad.shape[-1])
        matrix = np.ascontiguousarray(kernel).reshape(inner, kernel.shape[-1])
        return np.asarray(rows @ matrix.T).reshape(*grad.shape[:-1], inner)
    # Unfolding the gradient pays unless it has far more channels than the input.
    if all(s == 1 for s in where.strides) and 2 * inner >= kernel.shape[-1]:
        return _correlate_back(grad, kernel, where)
    return _scatter_back(grad, kernel, where)


def _correlate_back(grad: Array, kernel: Array, where: windows.Window) -> Array:
    """With steps of 1 the transpose is a correlation with the flipped kernel."""
    reach = [(k - 1) * d for k, d in zip(where.window, where.dilations, strict=True)]
    before = [r - a for r, (a, _) in zip(reach, where.pads, strict=True)]
    after = [n + r - o - b for n, r, o, b in zip(where.size, reach, where.out, before, strict=True)]
    if min(before) < 0 or min(after) < 0:
        # Padded by more than the window reaches: some of the gradient falls outside.
        return _scatter_back(grad, kernel, where)
    back = windows.Window(
        where.out, where.window, where.strides, where.dilations,
        tuple(zip(before, after, strict=True)), where.size,
    )  # fmt: skip
    flip = (slice(None, None, -1),) * len(where.window)
    return conv_forward(grad, np.swapaxes(kernel[flip], -1, -2), back)


def _scatter_back(grad: Array, kernel: Array, where: windows.Window) -> Array:
    """One product a window element, added where that element lies."""
    inner = kernel.shape[-2]
    padded = np.zeros((grad.shape[0], *where.padded, inner), grad.dtype)
    rows = grad.reshape(math.prod(grad.shape[:-1]), grad.shape[-1])
    part = np.empty((rows.shape[0], inner), grad.dtype)
    shaped = part.reshape(*grad.shape[:-1], inner)
    for offset, here in where.taps():
        np.matmul(rows, kernel[offset].T, out=part)
        padded[(slice(None), *here)] += shaped
    return unpad(padded, where)


def conv_backward_filter(
    x: Array, grad: Array, where: windows.Window, filter_channels: int
) -> Array:
    """The gradient of `conv_forward` with respect to `kernel`."""
    groups = _groups(x, filter_channels)
    outputs = grad.shape[-1]
    if groups > 1:
        share = outputs // groups
        parts = [
            conv_backward_filter(
                part, grad[..., i * share : (i + 1) * share], where, filter_channels
            )
            for i, part in enumerate(np.split(x, groups, axis=-1))
        ]
        return np.concatenate(parts, axis=-1)
    grad = np.ascontiguousarray(grad)
    shape = (*where.window, x.shape[-1], outputs)
    if where.is_pointwise:
        rows = np.ascontiguousarray(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
        flat = grad.reshape(rows.shape[0], outputs)
        return np.asarray(rows.T @ flat).reshape(shape)
    padded = pad(np.ascontiguousarray(x) if not where.is_padded else x, where)
    plane = math.prod(where.out[-2:])
    if where.strides[-2:-1] == (1,) and plane >= _PLANE * outputs:
        return _filter_by_lines(padded, grad, where).reshape(shape)
    total = np.zeros((math.prod(shape[:-1]), outputs), x.dtype)
    part = np.empty_like(total)
    for block, rows in _unfolded(padded, where):
        total += np.matmul(rows.T, grad[block].reshape(rows.shape[0], outputs), out=part)
    return total.reshape(shape)


def _lines(padded: Array, where: windows.Window) -> Array:
    """[..., out, window * channels]: unfolded along the last dimension alone."""
    *outer, step, channel = padded.strides
    view = np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:-2], where.out[-1], where.window[-1], padded.shape[-1]),
        (*outer, step * where.strides[-1], step * where.dilations[-1], channel),
        writeable=False,
    )
    return np.ascontiguousarray(view).reshape(*view.shape[:-2], view.shape[-2] * view.shape[-1])


def _filter_by_lines(padded: Array, grad: Array, where: windows.Window) -> Array:
    """[*outer window, window * channels, outputs], where lines of a plane are neighbours.

    Of windows as large as images the unfolded input is a hundred times the input, and to write it
    takes as long as the products. Unfolded along lines it is as large as these are; lines that a
    plane of the output sees through one place of the window are one matrix, and nothing is copied.
    """
    lines, steps, outputs = _lines(padded, where), where.strides[:-2], grad.shape[-1]
    *outer, line, row, element = lines.strides
    inside = [t * d for t, d in zip((*outer[1:], line), where.dilations, strict=False)]
    total = np.zeros((*where.window[:-1], lines.shape[-1], outputs), grad.dtype)
    part = np.empty_like(total)
    plane = where.out[-2] * where.out[-1]
    for entry, *place in np.ndindex(grad.shape[: len(steps) + 1]):
        corner = lines[(entry, *(p * s for p, s in zip(place, steps, strict=True)))]
        seen = np.lib.stride_tricks.as_strided(
            corner, (*where.window[:-1], lines.shape[-1], plane), (*inside, element, row),
            writeable=False,
        )  # fmt: skip
        total += np.matmul(seen, grad[(entry, *place)].reshape(plane, outputs), out=part)
    return total
