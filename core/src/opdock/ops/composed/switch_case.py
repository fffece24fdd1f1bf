"""`tf.switch_case`: one of several functions, chosen by a number."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.control import cond
from opdock.ops.registry import get

__all__ = ["switch_case"]


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:  # fmt: skip
    """The result of the function with the number `branch_index`.

    Args:
        branch_index: a scalar integer tensor.
        branch_fns: a list of functions, or pairs of a number and a function, or a dict of them;
            the numbers are 0, 1, 2 and so on. All return the same structure of tensors.
        default: the function for any other number; without it that is the last one.
        name: a name for the operations.

    Raises:
        TypeError: `branch_index` is no integer tensor, or an entry no number with a function.
        ValueError: there are no functions, or a number is missing.
    """
    functions = _ordered(branch_fns)
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"branch_index must a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"branch_index must an integer Tensor, got {branch_index.dtype}")
    if default is not None:
        if not callable(default):
            raise TypeError("default must be callable.")
        functions.append(default)
    with name_scope(name, "case", [branch_index]):
        last = len(functions) - 1
        # What is below zero is for the last one as well.
        inside = get("GreaterEqual")(branch_index, get("Cast")(0, DstT=branch_index.dtype))
        top = get("Cast")(last, DstT=branch_index.dtype)
        index = get("SelectV2")(inside, get("Minimum")(branch_index, top), top)
        return _chosen(index, functions, 0)


def _chosen(index: Tensor, functions: list[Callable[[], Any]], first: int) -> Any:
    """The result of one of some functions, of which the first has the number `first`."""
    if len(functions) == 1:
        return functions[0]()
    half = len(functions) // 2
    below = get("Less")(index, get("Cast")(first + half, DstT=index.dtype))
    return cond(
        below,
        functools.partial(_chosen, index, functions[:half], first),
        functools.partial(_chosen, index, functions[half:], first + half),
    )


def _ordered(branch_fns: Any) -> list[Callable[[], Any]]:
    if not branch_fns:
        raise ValueError("Must provide at least one item in branch_fns")
    if not isinstance(branch_fns, (list, tuple, Mapping)):
        raise TypeError("branch_fns must be a list, tuple, or dict")
    pairs = list(branch_fns.items() if isinstance(branch_fns, Mapping) else branch_fns)
    if all(callable(fn) for fn in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in branch_fns must be a 2-tuple")
        key, fn = pair
        if not isinstance(key, int):
            raise TypeError(f"key must be a Python `int`, got {type(key)}")
        if not callable(fn):
            raise TypeError(f"fn for key {key} must be callable.")
    by_key = dict(pairs)
    if sorted(k for k, _ in pairs) != list(range(len(pairs))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found "
            f"{{{','.join(str(k) for k in sorted(k for k, _ in pairs))}}}"
        )
    return [by_key[k] for k in range(len(pairs))]
