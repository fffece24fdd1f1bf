"""The paths of a beam search: all beams go back one step at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, cells, checks

__all__ = ["table"]

Array = cells.Array

table = KernelTable()


def _check(steps: Array, parents: Array, lengths: Array, end: Array) -> None:
    for what, value, rank, kind in (
        ("step_ids", steps, 3, "a 3-tensor"),
        ("max_sequence_lengths", lengths, 1, "a vector"),
        ("end_token", end, 0, "a scalar"),
    ):
        if value.ndim != rank:
            raise checks.invalid(f"{what} must be {kind}, saw shape: {list(value.shape)}")
    if steps.shape != parents.shape:
        raise checks.invalid(
            "step_ids.shape must match parent_ids.shape.  but shapes are: "
            f"{list(steps.shape)} and {list(parents.shape)}"
        )
    if steps.shape[1] != len(lengths):
        raise checks.invalid(
            "batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must match."
            f"  but shapes are: {list(steps.shape)} and {list(lengths.shape)}"
        )


@table.binder("GatherTree")
def gather_tree(sig: NodeSig) -> Callable[..., Array]:
    """The ids on the way to each beam's last step, and the end token behind them."""

    def run(steps: Array, parents: Array, lengths: Array, end: Array) -> Array:
        _check(steps, parents, lengths, end)
        time, batch, width = steps.shape
        last = np.minimum(lengths, time)[:, None] - 1
        beams = np.full_like(steps, end)
        rows, own = np.arange(batch)[:, None], np.arange(width)
        place = np.broadcast_to(own, (batch, width)).copy()
        for level in range(int(last.max(initial=-1)), -1, -1):
            here = level <= last
            at = np.where(here & (level < last), place, own)
            wrong = here & ((at < 0) | (at >= width))
            if wrong.any():
                row, beam = np.argwhere(wrong)[0].tolist()
                raise checks.invalid(
                    f"Saw invalid parent id {at[row, beam]} at (batch, time, beam) == "
                    f"({row}, {level}, {beam})"
                )
            beams[level] = np.where(here, steps[level][rows, at], beams[level])
            place = np.where(here, parents[level][rows, at], place)
        # Behind its first end a path has nothing more, whatever a broken one has there.
        ended = np.logical_or.accumulate(beams == end, axis=0)
        beams[ended] = end
        return beams

    return run
