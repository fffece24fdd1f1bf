"""What the layers of contrib share: variable names of their own, collections, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from opdock import dtypes
from opdock.contrib.layers.utils import collect_named_outputs, get_variable_collections
from opdock.graph.nodes.collections import GraphKeys, add_to_collections
from opdock.graph.variables.partitioned import parts_of
from opdock.graph.variables.variable_scope import get_variable
from opdock.ops.bias import bias_add
from opdock.windows import channels_first

_T = TypeVar("_T")


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
    dtype: Any = dtypes.float32,
) -> Any:
    """A variable of the scope, in MODEL_VARIABLES too: whole, or in its scope's parts."""
    given = [collections] if isinstance(collections, str) else (collections or ())
    found = [*given, GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return get_variable(
        name, shape, dtype, initializer, regularizer, trainable, [*dict.fromkeys(found)]
    )


def collect_variable(variable: Any, collections: Any, kind: str) -> None:
    """Adds a layer's variable, or each of its parts, to the user's collections.

    Args:
        variable: the variable, or None.
        collections: names of collections, or such lists by kind of variable.
        kind: "weights", "biases", "beta", ...
    """
    names = get_variable_collections(collections, kind)
    if variable is None or not names:
        return
    for part in parts_of(variable):
        add_to_collections([names] if isinstance(names, str) else list(names), part)


def finish(outputs: _T, activation_fn: Any, outputs_collections: Any, alias: str) -> _T:
    """Applies the activation and collects the result under the name of the layer's scope."""
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, alias, outputs)


def normalized(
    layer: Any, inputs: Any, normalizer_fn: Any, normalizer_params: Any,
    variables_collections: Any, kernels: Sequence[str] = ("kernel",),
) -> Any:  # fmt: skip
    """A layer's result with its normalizer's in the place of a bias; its variables are collected.

    Args:
        layer: a layer of `tf.layers`.
        inputs: what it is called with.
        normalizer_fn, normalizer_params: the normalizer and its arguments, or None.
        variables_collections: collections for the variables, or a dict of them.
        kernels: the attributes that are "weights".
    """
    outputs = layer(inputs)
    for name in kernels:
        collect_variable(getattr(layer, name), variables_collections, "weights")
    collect_variable(layer.bias, variables_collections, "biases")
    return outputs if normalizer_fn is None else normalizer_fn(outputs, **(normalizer_params or {}))


def biased(
    outputs: Any, size: int, initializer: Any, regularizer: Any, trainable: bool,
    variables_collections: Any, data_format: str | None = None,
) -> Any:  # fmt: skip
    """Adds a new variable `biases` of the scope to each channel."""
    biases = model_variable(
        "biases", [size], initializer, trainable,
        get_variable_collections(variables_collections, "biases"), regularizer,
        outputs.dtype.base_dtype,
    )  # fmt: skip
    return bias_add(outputs, biases, data_format=data_format)


def channels(data_format: str | None, allowed: tuple[str, ...] = ("NHWC", "NCHW")) -> str:
    """The format "channels_first" or "channels_last" for one of the ops.

    Raises:
        ValueError: the format is none of `allowed`.
    """
    if data_format is not None and data_format not in allowed:
        known = " or ".join(reversed(allowed))
        raise ValueError(f"data_format has to be either {known}: got {data_format!r}.")
    first = channels_first(data_format)
    return "channels_first" if first else "channels_last"
