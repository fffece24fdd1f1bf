"""Whether results have to be the same bits in each run: `TF_DETERMINISTIC_OPS`."""

from __future__ import annotations

import os

__all__ = ["deterministic"]


def deterministic() -> bool:
    """Whether the same program on the same device has to give the same bits in every process.

    TensorFlow's variable `TF_DETERMINISTIC_OPS` says so, by "1" or "true". A backend then chooses
    nothing by time or load, adds nothing up in an order that the number of threads decides, and
    refuses a kernel that cannot do without (a raised `UnimplementedError`, or a `when`).
    """
    return os.environ.get("TF_DETERMINISTIC_OPS", "").lower() in ("1", "true")
