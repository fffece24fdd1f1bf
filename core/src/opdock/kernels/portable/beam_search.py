"""The portable kernel of beam search's paths: all beams go back one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.kernels.array_api import device_ints, fails, fetched, index_type, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def _check(steps: Any, parents: Any, lengths: Any, end: Any) -> None:
    for what, value, rank, kind in (
        ("step_ids", steps, 3, "a 3-tensor"),
        ("max_sequence_lengths", lengths, 1, "a vector"),
        ("end_token", end, 0, "a scalar"),
    ):
        if len(value.shape) != rank:
            raise invalid(f"{what} must be {kind}, saw shape: {list(value.shape)}")
    if tuple(steps.shape) != tuple(parents.shape):
        raise invalid(
            "step_ids.shape must match parent_ids.shape.  but shapes are: "
            f"{list(steps.shape)} and {list(parents.shape)}"
        )
    if steps.shape[1] != lengths.shape[0]:
        raise invalid(
            "batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must match."
            f"  but shapes are: {list(steps.shape)} and {list(lengths.shape)}"
        )


@portable("GatherTree")
def gather_tree(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The ids on the way to each beam's last step, and the end token behind them."""

    def run(steps: Any, parents: Any, lengths: Any, end: Any) -> Any:
        _check(steps, parents, lengths, end)
        time, batch, width = steps.shape
        if 0 in (time, batch, width):
            return xp.broadcast_to(end, steps.shape) + xp.zeros_like(steps)
        last = xp.expand_dims(xp.astype(xp.clip(lengths, None, time), index_type(xp)), axis=1) - 1
        own = xp.reshape(device_ints(xp, np.arange(width), steps), (1, width))
        row = xp.reshape(device_ints(xp, np.arange(batch) * width, steps), (batch, 1))

        def of(level: Any, at: Any) -> Any:
            return xp.reshape(
                xp.take(xp.reshape(level, (-1,)), xp.reshape(row + at, (-1,)), axis=0),
                (batch, width),
            )

        end = xp.broadcast_to(end, (batch, width))
        place = xp.broadcast_to(own, (batch, width))
        beams: list[Any] = []
        for level in range(time - 1, -1, -1):
            here = level <= last
            at = xp.where(level < last, place, own)
            wrong = here & ((at < 0) | (at >= width))
            if fails(xp, xp.any(wrong)):
                raise _no_beam(xp, wrong, at, level)
            at = xp.clip(at, 0, width - 1)
            beams.append(xp.where(here, of(steps[level, ...], at), end))
            place = xp.where(here, xp.astype(of(parents[level, ...], at), at.dtype), place)
        path = xp.stack(beams[::-1], axis=0)
        # Behind its first end a path has nothing more, whatever a broken one has there.
        ends = xp.cumulative_sum(xp.astype(path == end, xp.int32), axis=0)
        return xp.where(ends > 0, end, path)

    return run


def _no_beam(xp: Any, wrong: Any, at: Any, level: int) -> Exception:
    """The error of a path that leads to no beam."""
    bad = np.argwhere(fetched(xp, xp.astype(wrong, xp.int32)))
    row, beam = bad[0].tolist()
    return invalid(
        f"Saw invalid parent id {int(at[row, beam])} at (batch, time, beam) == "
        f"({row}, {level}, {beam})"
    )
