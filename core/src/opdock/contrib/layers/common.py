"""What the layers of contrib share: variable names of their own, collections, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, add_to_collections
from opdock.graph.variables.partitioned import parts_of
from opdock.graph.variables.variable_scope import get_variable
from opdock.windows import channels_first


def variable_getter(rename: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """A custom getter that renames variables and adds them to MODEL_VARIABLES.

    Args:
        rename: new last parts of names.
    """

    def getter(inner: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        head, slash, last = name.rpartition("/")
        collections = list(kwargs.pop("collections", None) or ())
        collections += [
            k
            for k in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
            if k not in collections
        ]
        name = head + slash + (rename or {}).get(last, last)
        return inner(name, *args, collections=collections, **kwargs)

    return getter


def model_variable(
    name: str,
    shape: Any,
    initializer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    regularizer: Any = None,
) -> Any:
    """A float32 variable of the scope, in MODEL_VARIABLES too: whole, or in its scope's parts."""
    found = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return get_variable(
        name, shape, dtypes.float32, initializer, regularizer, trainable, [*dict.fromkeys(found)]
    )


def collect_variable(variable: Any, collections: Any, kind: str) -> None:
    """Adds a layer's variable, or each of its parts, to the user's collections.

    Args:
        variable: the variable, or None.
        collections: names of collections, or such lists by kind of variable.
        kind: "weights", "biases", "beta", ...
    """
    if variable is None or not collections:
        return
    names = collections.get(kind) if isinstance(collections, Mapping) else collections
    if not names:
        return
    for part in parts_of(variable):
        add_to_collections([names] if isinstance(names, str) else list(names), part)


def finish(outputs: Any, activation_fn: Any, outputs_collections: Any) -> Any:
    """Applies the activation and collects the result."""
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    if outputs_collections:
        names = (
            [outputs_collections] if isinstance(outputs_collections, str) else (outputs_collections)
        )
        for name in names:
            add_to_collection(name, outputs)
    return outputs


def channels(data_format: str | None, allowed: tuple[str, ...] = ("NHWC", "NCHW")) -> str:
    """The format "channels_first" or "channels_last" for one of the ops.

    Raises:
        ValueError: the format is none of `allowed`.
    """
    if data_format is not None and data_format not in allowed:
        raise ValueError(f"data_format has to be one of {', '.join(allowed)}: got {data_format!r}.")
    first = channels_first(data_format)
    return "channels_first" if first else "channels_last"
