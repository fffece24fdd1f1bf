"""Primitives that use threads while that gains: each has a twin for one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from opdock_cpu.sharing import Site

__all__ = ["governed"]

Run = Callable[..., None]


def governed(
    several: Run, make_alone: Callable[[], Run | None], outputs: Sequence[bool]
) -> Run:  # fmt: skip
    """A primitive on several threads or on one, as the process's governor says.

    oneDNN may add up in another order on one thread. So the second call computes both ways: where
    the bits differ, or one thread is computed by other means, there are always several threads.

    Args:
        several: runs the primitive on several threads.
        make_alone: gives what computes the same on one; None if there is nothing such.
        outputs: for each argument whether it is written.
    """
    site = Site()
    alone: Run | None = None
    calls = 0

    def run(*arrays: Any) -> None:
        nonlocal alone, calls
        if alone is not None:
            shared = site.shared()
            begin = perf_counter()
            (several if shared else alone)(*arrays)
            site.tell(shared, perf_counter() - begin)
            return
        several(*arrays)
        if calls < 2:
            calls += 1
            if calls == 2:
                twin = make_alone()
                alone = twin if twin is not None and _agree(twin, arrays, outputs) else None

    return run


def _agree(twin: Run, arrays: Sequence[Any], outputs: Sequence[bool]) -> bool:
    """Whether `twin` gives, to the bit, what the arrays' outputs hold."""
    given = [a for a, out in zip(arrays, outputs, strict=True) if not out]
    held = [a for a, out in zip(arrays, outputs, strict=True) if out]
    if any(np.may_share_memory(a, b) for a in given for b in held):
        return False
    again = [np.empty_like(a) if out else a for a, out in zip(arrays, outputs, strict=True)]
    twin(*again)
    return all(
        a.tobytes() == b.tobytes() for a, b, out in zip(arrays, again, outputs, strict=True) if out
    )
