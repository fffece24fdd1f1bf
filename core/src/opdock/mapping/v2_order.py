"""Functions of `tf.compat.v2` that are 1.x's with other arguments: in another order, or fewer.

The table has TF 2's names and defaults. A call is bound to those, and what it gives is handed on by
name: under the same name where 1.x's function has it, else under the name that stands in its place.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes, errors
from opdock.mapping import names
from opdock.util.inspecting import getfullargspec

# What 1.x calls an argument, where it is neither by name nor by place.
_RENAMED: Final = {"dilations": "rates"}
# What an argument that 1.x lacks may say, since it is what 1.x does.
_UNDERSTOOD: Final = {"data_format": "NHWC"}

# What TF 2's function fixes, where 1.x's argument for it has another default.
_FIXED: Final[dict[str, dict[str, Any]]] = {
    f"nn.{name}": {"partition_strategy": "div"}
    for name in (
        "embedding_lookup",
        "embedding_lookup_sparse",
        "nce_loss",
        "safe_embedding_lookup_sparse",
        "sampled_softmax_loss",
    )
}


@functools.cache
def adapted(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function `tf.compat.v2.<path>`, made of 1.x's."""
    words = names.table().v2_order[path]
    signature = inspect.Signature([_parameter(word) for word in words])
    fixed = _FIXED.get(path, {})
    spec = getfullargspec(function)
    required = spec.args[: len(spec.args) - len(spec.defaults or ())]
    theirs = [name for name in spec.args if name not in fixed]
    there = _renamed(tuple(signature.parameters), tuple(theirs), frozenset(required))

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name in given.keys() - there.keys():
            value = given[name]
            as_it_is = (None, signature.parameters[name].default, _UNDERSTOOD.get(name))
            if not isinstance(value, str | int | float | None) or value not in as_it_is:
                raise errors.UnimplementedError(
                    None, None, f"tf.compat.v2.{path}: {name} is an argument of TF 2 alone"
                )
        own = {there[n]: value for n, value in given.items() if n in there}
        return function(**own, **fixed)

    functools.update_wrapper(call, function)
    # What it wraps has other arguments, and nobody is to look through to those.
    del call.__wrapped__  # type: ignore[attr-defined]
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _renamed(
    mine: tuple[str, ...], theirs: tuple[str, ...], required: frozenset[str]
) -> dict[str, str]:
    """TF 2's names of arguments and 1.x's.

    1.x has some of TF 2's names last, as other names of arguments that it requires under its own.
    """
    found = {}
    for name, other in zip(mine, (*theirs, *[""] * len(mine)), strict=False):
        if other in required and other not in mine and name not in required:
            found[name] = other
        elif name in theirs:
            found[name] = name
        elif (renamed := _RENAMED.get(name)) in theirs and renamed is not None:
            found[name] = renamed
        elif other and other not in mine:
            found[name] = other
    return found


_CONSTANTS: Final = {"None": None, "True": True, "False": False}


def _parameter(word: str) -> inspect.Parameter:
    name, has_default, text = word.partition("=")
    default: Any = inspect.Parameter.empty
    if has_default:
        default = _value(text)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _value(text: str) -> Any:
    """A default as the table writes it: a constant, a number, a dtype, else a word."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("dtype:"):
        return dtypes.as_dtype(text.removeprefix("dtype:"))
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
