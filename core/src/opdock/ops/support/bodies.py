"""What shape functions ask of the functions in a node's attributes."""

from __future__ import annotations

from typing import Any

from opdock import errors

__all__ = ["check_loop"]


def check_loop(cond: Any, body: Any, count: int) -> None:
    """Checks that the functions of a loop have the results that they should.

    Args:
        cond: its condition; what is no graph, but a name, is not known yet.
        body: what a turn computes.
        count: how many variables it has.

    Raises:
        InvalidArgumentError: the condition gives not one value, or the body not one a variable.
    """
    conditions, results = getattr(cond, "outputs", None), getattr(body, "outputs", None)
    if conditions is not None and len(conditions) != 1:
        raise errors.InvalidArgumentError(
            None, None, f"Expected a single scalar return value, got {len(conditions)} tensors."
        )
    if results is not None and len(results) != count:
        raise errors.InvalidArgumentError(
            None, None, f"While loop body returned {len(results)} arguments. Expected: {count}"
        )
