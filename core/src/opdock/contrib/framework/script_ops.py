"""`py_func` with keyword arguments, nested results and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.ops.script import py_func as call_python
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["py_func"]


def py_func(
    func: Callable[..., Any], args: Any = (), kwargs: dict[str, Any] | None = None,
    output_types: Any = None, output_shapes: Any = None, stateful: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A Python function on arrays as an operation.

    Args:
        func: takes arrays in the structures of `args` and `kwargs`, returns such structures.
        args, kwargs: structures of tensors.
        output_types: the structure of the results' types, or a function of the arguments to it.
        output_shapes: likewise their shapes, or None where they are not known.
        stateful: whether each call counts, though its arguments are the same.
        name: a name for the operation.

    Returns:
        The structure of results.

    Raises:
        TypeError: `args` is no list or tuple, or `kwargs` no dict.
    """
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be list and not {type(args)}. args: {args}")
    named = {} if kwargs is None else kwargs
    if not isinstance(named, dict):
        raise TypeError(f"kwargs must be dict and not {type(named)}. args: {named}")
    types = output_types(*args, **named) if callable(output_types) else output_types
    shapes = output_shapes(*args, **named) if callable(output_shapes) else output_shapes
    given = (args, named)

    def flat(*arrays: Any) -> list[Any]:
        positional, keywords = nest.pack_sequence_as(given, list(arrays))
        result = func(*positional, **keywords)
        nest.assert_shallow_structure(types, result)
        return nest.flatten(result)

    results = call_python(flat, nest.flatten(given), nest.flatten(types), stateful, name)
    if shapes is not None:
        wanted = nest.flatten_up_to(types, shapes)
        for result, shape in zip(results, wanted, strict=True):
            result.set_shape(TensorShape(shape))
    return nest.pack_sequence_as(types, results)
