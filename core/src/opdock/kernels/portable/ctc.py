"""The portable kernel of the likeliest class of each step, as sequences of labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.kernels.array_api import device_ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_ctc_lengths(lengths: Any, steps: int, batch: int) -> None:
    """Raises InvalidArgumentError unless each sequence has a length, of at most so many steps.

    Args:
        lengths: in host memory.
        steps: how many steps there are.
        batch: how many sequences.
    """
    if lengths.shape != (batch,):
        raise invalid(f"len(sequence_length) != batch_size: {lengths.shape} vs {batch}")
    if lengths.size and lengths.max() > steps:
        b = int(np.argmax(lengths))
        raise invalid(f"sequence_length({b}) <= {steps}")


@portable("CTCGreedyDecoder", host_inputs=("sequence_length",))
def ctc_greedy_decoder(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """The best class of each step without blanks and, optionally, repeats."""
    merge = bool(sig.attrs["merge_repeated"])

    def run(inputs: Any, lengths: Any) -> tuple[Any, ...]:
        steps, batch, classes = inputs.shape
        lengths = np.asarray(lengths)
        check_ctc_lengths(lengths, steps, batch)
        device = getattr(inputs, "device", None)
        alive = xp.asarray(np.arange(steps) < lengths[:, None], device=device)
        if 0 in (steps, batch):
            return _nothing(xp, inputs, batch)
        best = xp.astype(xp.matrix_transpose(xp.argmax(inputs, axis=-1)), xp.int64)
        top = xp.matrix_transpose(xp.max(inputs, axis=-1))
        top = xp.where(alive, top, xp.zeros_like(top))
        score = -xp.sum(top, axis=1, keepdims=True, dtype=inputs.dtype)
        keep = alive & (best != classes - 1)
        if merge:
            first = xp.ones((batch, 1), dtype=xp.bool, device=device)
            keep = keep & xp.concat([first, best[:, 1:] != best[:, :-1]], axis=1)
        # How many there are in a row up to each.
        counts = xp.cumulative_sum(xp.astype(keep, xp.int64), axis=1)
        kept = xp.nonzero(xp.reshape(keep, (-1,)))[0]
        column = xp.take(xp.reshape(counts, (-1,)), kept, axis=0) - 1
        indices = xp.stack([xp.astype(kept // steps, xp.int64), column], axis=1)
        rows = xp.asarray(batch, dtype=xp.int64, device=device)
        shape = xp.stack([rows, xp.max(counts[:, -1])])
        return indices, xp.take(xp.reshape(best, (-1,)), kept, axis=0), shape, score

    return run


def _nothing(xp: Any, inputs: Any, batch: int) -> tuple[Any, ...]:
    """The decoding of no step."""
    device = getattr(inputs, "device", None)
    return (
        xp.zeros((0, 2), dtype=xp.int64, device=device),
        xp.zeros((0,), dtype=xp.int64, device=device),
        device_ints(xp, [batch, 0], inputs),
        xp.zeros((batch, 1), dtype=inputs.dtype, device=device),
    )
