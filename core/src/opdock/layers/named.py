"""What layers take by name: activations, initializers, regularizers and constraints of tf.keras.

`tf.layers.dense(x, 10, activation="relu", kernel_regularizer="l2")`: TF's layers descend from those
of tf.keras, whose names these are, with tf.keras' defaults. A name, a dict of `class_name` and
`config`, a class and a function all stand for the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables import initializers
from opdock.ops.arithmetic import multiply
from opdock.ops.cast import cast
from opdock.ops.clip import clip_by_value
from opdock.ops.compare import greater_equal
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import exp, sigmoid, sqrt, square, tanh
from opdock.ops.nn import elu, relu, selu, softplus, softsign
from opdock.ops.reduce import reduce_sum
from opdock.ops.xent import softmax

_TINY: Final = 1e-7
"""What tf.keras adds to norms that it divides by."""


def _linear(x: Any) -> Any:
    return x


def _hard_sigmoid(x: Any) -> Any:
    return clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


_ACTIVATIONS: Final[dict[str, Callable[..., Any]]] = {
    "elu": elu,
    "exponential": exp,
    "hard_sigmoid": _hard_sigmoid,
    "linear": _linear,
    "relu": relu,
    "selu": selu,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "softplus": softplus,
    "softsign": softsign,
    "tanh": tanh,
}

_random_uniform: Final = partial(initializers.RandomUniform, minval=-0.05, maxval=0.05)
_random_normal: Final = partial(initializers.RandomNormal, mean=0.0, stddev=0.05)
_truncated_normal: Final = partial(initializers.TruncatedNormal, mean=0.0, stddev=0.05)
_INITIALIZERS: Final[dict[str, Callable[..., Any]]] = {
    "Constant": initializers.Constant,
    "GlorotNormal": initializers.GlorotNormal,
    "GlorotUniform": initializers.GlorotUniform,
    "Identity": initializers.Identity,
    "Ones": initializers.Ones,
    "Orthogonal": initializers.Orthogonal,
    "RandomNormal": _random_normal,
    "RandomUniform": _random_uniform,
    "TruncatedNormal": _truncated_normal,
    "VarianceScaling": initializers.VarianceScaling,
    "Zeros": initializers.Zeros,
    "constant": initializers.Constant,
    "glorot_normal": initializers.GlorotNormal,
    "glorot_uniform": initializers.GlorotUniform,
    "he_normal": initializers.he_normal,
    "he_uniform": initializers.he_uniform,
    "identity": initializers.Identity,
    "lecun_normal": initializers.lecun_normal,
    "lecun_uniform": initializers.lecun_uniform,
    "normal": _random_normal,
    "one": initializers.Ones,
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": _random_normal,
    "random_uniform": _random_uniform,
    "truncated_normal": _truncated_normal,
    "uniform": _random_uniform,
    "zero": initializers.Zeros,
    "zeros": initializers.Zeros,
}


def _penalty(l1: float = 0.0, l2: float = 0.0) -> Callable[[Any], Tensor | None]:
    """A loss of `l1` times the sum of magnitudes and `l2` times the sum of squares."""

    def loss(x: Any) -> Tensor | None:
        parts = []
        if l1:
            parts.append(reduce_sum(l1 * absolute(x)))
        if l2:
            parts.append(reduce_sum(l2 * square(x)))
        return sum(parts[1:], parts[0]) if parts else None

    return loss


def _l1(l: float = 0.01) -> Callable[[Any], Tensor | None]:
    return _penalty(l1=l)


def _l2(l: float = 0.01) -> Callable[[Any], Tensor | None]:
    return _penalty(l2=l)


def _l1_l2(l1: float = 0.01, l2: float = 0.01) -> Callable[[Any], Tensor | None]:
    return _penalty(l1, l2)


_REGULARIZERS: Final[dict[str, Callable[..., Any]]] = {
    "L1L2": _penalty,
    "l1": _l1,
    "l1_l2": _l1_l2,
    "l2": _l2,
}


def _norms(w: Any, axis: Any) -> Any:
    return sqrt(reduce_sum(square(w), axis, keepdims=True))


def _non_neg() -> Callable[[Any], Tensor]:
    return lambda w: multiply(w, cast(greater_equal(w, 0.0), w.dtype.base_dtype))


def _unit_norm(axis: Any = 0) -> Callable[[Any], Tensor]:
    return lambda w: w / (_TINY + _norms(w, axis))


def _min_max_norm(
    min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
) -> Callable[[Any], Tensor]:
    def bounded(w: Any) -> Tensor:
        norms = _norms(w, axis)
        wanted = rate * clip_by_value(norms, min_value, max_value) + (1 - rate) * norms
        return multiply(w, wanted / (_TINY + norms))

    return bounded


def _max_norm(max_value: float = 2.0, axis: Any = 0) -> Callable[[Any], Tensor]:
    return _min_max_norm(0.0, max_value, 1.0, axis)


_CONSTRAINTS: Final[dict[str, Callable[..., Any]]] = {
    "MaxNorm": _max_norm,
    "MinMaxNorm": _min_max_norm,
    "NonNeg": _non_neg,
    "UnitNorm": _unit_norm,
    "max_norm": _max_norm,
    "maxnorm": _max_norm,
    "min_max_norm": _min_max_norm,
    "non_neg": _non_neg,
    "nonneg": _non_neg,
    "unit_norm": _unit_norm,
    "unitnorm": _unit_norm,
}


def activation(given: Any) -> Any:
    """The function that an activation's name stands for; functions and None as they are.

    Raises:
        ValueError: no activation has the name.
        TypeError: `given` is neither a name nor a function.
    """
    if isinstance(given, str):
        return _named(given, _ACTIVATIONS, "activation function")
    if given is None or callable(given):
        return given
    raise TypeError(f"Could not interpret activation function identifier: {given!r}")


def initializer(given: Any) -> Any:
    """The initializer that a name or a dict stands for; all else, tensors among it, as it is.

    Raises:
        ValueError: no initializer has the name.
    """
    return _made(given, _INITIALIZERS, "initializer")


def regularizer(given: Any) -> Any:
    """The function from a variable to a loss that a name or a dict stands for; all else as it is.

    Raises:
        ValueError: no regularizer has the name.
    """
    return _made(given, _REGULARIZERS, "regularizer")


def constraint(given: Any) -> Any:
    """The function on updated variables that a name or a dict stands for; all else as it is.

    Raises:
        ValueError: no constraint has the name.
    """
    return _made(given, _CONSTRAINTS, "constraint")


def _made(given: Any, known: Mapping[str, Callable[..., Any]], kind: str) -> Any:
    if isinstance(given, str):
        return _named(given, known, kind)()
    if isinstance(given, dict):
        if not {"class_name", "config"} <= given.keys():
            raise ValueError(f"Improper config format: {given}")
        return _named(given["class_name"], known, kind)(**given["config"])
    return given


def _named(name: str, known: Mapping[str, Callable[..., Any]], kind: str) -> Callable[..., Any]:
    if name not in known:
        raise ValueError(f"Unknown {kind}:{name}")
    return known[name]
