"""The gradient checker: `tf.test.compute_gradient(_error)`.

Compares the Jacobian by reverse mode with central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.autodiff.gradients import gradients
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get

Array = np.ndarray[Any, Any]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> Any:
    """The Jacobian dy/dx as (theoretical, numerical) matrices of shape [x size, y size].

    They are real: a complex number counts as two, real part first.

    Args:
        x: a tensor, or a list of them with lists for the arguments below.
        x_shape: the shape of x.
        y: the tensor to differentiate.
        y_shape: the shape of y.
        x_init_value: where to differentiate; random by default.
        delta: the step of the central difference.
        init_targets: operations to run first.
        extra_feed_dict: further feeds.

    Raises:
        ValueError: there is no default session, or the gradient of a y without elements is not
            zeros of x's shape.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session.")
    for target in _as_list(init_targets):
        session.run(target)
    xs, x_shapes = _as_list(x), _as_list(x_shape) if isinstance(x, list) else [x_shape]
    starts = (
        x_init_value
        if isinstance(x, list) and x_init_value is not None
        else [x_init_value] * len(xs)
    )
    found = _gradients(y, y_shape, xs)
    feeds: dict[Any, Any] = dict(extra_feed_dict or {})
    values = []
    for tensor, shape, start in zip(xs, x_shapes, starts, strict=True):
        dtype = tensor.dtype.base_dtype.np
        value = np.asarray(_random(tuple(shape), dtype) if start is None else start)
        values.append(np.array(value, dtype))
        feeds[tensor] = values[-1]
    out = [
        (
            _theoretical(session, tensor, value, grad, weights, feeds, y_shape),
            _numerical(session, tensor, value, y, feeds, delta, y_shape),
        )
        for tensor, value, (grad, weights) in zip(xs, values, found, strict=True)
    ]
    return out if isinstance(x, list) else out[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> float:
    """The largest difference between the two Jacobians of `compute_gradient`."""
    result = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = result if isinstance(result, list) else [result]
    return max((np.abs(a - b).max() if a.size else 0.0) for a, b in pairs)


def compute_gradient_of(
    f: Callable[..., Tensor], x: Sequence[Any], delta: float = 1e-3
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The Jacobians of a function, as TF 2's `tf.test.compute_gradient` gives them.

    Args:
        f: of as many tensors as there are in `x`.
        x: where to differentiate: a list of arrays or tensors.
        delta: the step of the central difference.

    Returns:
        The theoretical Jacobians, one an argument, of shape [x size, y size], and the numerical
        ones.

    Raises:
        ValueError: `x` is no list, or there is no default session.
    """
    if not isinstance(x, list):
        raise ValueError(f"`x` must be a list of Tensors (arguments to `f`), not a {type(x)}")
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session.")
    tensors = [convert_to_tensor(v) for v in x]
    values = session.run(tensors)
    arguments = [get("Placeholder")(dtype=t.dtype.base_dtype, shape=None) for t in tensors]
    y = f(*arguments)
    shape = np.shape(session.run(y, dict(zip(arguments, values, strict=True))))
    found = compute_gradient(arguments, [np.shape(v) for v in values], y, shape, values, delta)
    return tuple(t for t, _ in found), tuple(n for _, n in found)


def max_error(grad1: Sequence[Array], grad2: Sequence[Array]) -> float:
    """The largest difference between two lists of arrays."""
    gaps = [np.abs(a - b).max() for a, b in zip(grad1, grad2, strict=True) if a.size]
    return float(max(gaps, default=0.0))


def _random(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    # As in TF, by the generator that programs seed: they get TF's start.
    draw = np.random.random_sample
    return draw(shape) + 1j * draw(shape) if dtype.kind == "c" else draw(shape)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _gradients(y: Tensor, y_shape: Any, xs: list[Any]) -> list[tuple[Any, Tensor]]:
    weights = get("Placeholder")(dtype=y.dtype.base_dtype, shape=tuple(y_shape))
    return [
        (convert_to_tensor(g) if isinstance(g, IndexedSlices) else g, weights)
        for g in gradients(y, xs, grad_ys=weights)
    ]


def _reals(array: Array) -> Array:
    """All numbers in one dimension; complex ones are two reals each."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _theoretical(
    session: Any, x: Tensor, value: Array, grad: Any, weights: Tensor, feeds: Any, y_shape: Any
) -> Array:
    unit = np.zeros(tuple(y_shape), weights.dtype.base_dtype.np)
    units = _reals(unit)
    x_reals = _reals(value)
    jacobian = np.zeros((x_reals.size, units.size), np.result_type(x_reals.dtype, np.float32))
    if grad is None:
        return jacobian
    for column in range(units.size):
        units[column] = 1
        jacobian[:, column] = _reals(np.asarray(session.run(grad, {**feeds, weights: unit})))
        units[column] = 0
    if not units.size:
        _check_empty(np.asarray(session.run(grad, {**feeds, weights: unit})), value)
    return jacobian


def _check_empty(found: Array, value: Array) -> None:
    """Of a y without elements the gradients are zeros of x's shape; no column would tell."""
    if found.shape != value.shape:
        raise ValueError(
            f"Empty gradient has wrong shape: expected {value.shape}, got {found.shape}"
        )
    if found.any():
        raise ValueError("Empty tensor with nonzero gradients")


def _numerical(
    session: Any, x: Tensor, value: Array, y: Tensor, feeds: Any, delta: float, y_shape: Any
) -> Array:
    rows = []
    for i in range(_reals(value).size):
        low, high = value.copy(), value.copy()
        _reals(low)[i] -= delta
        _reals(high)[i] += delta
        above, below = (_wide(session.run(y, {**feeds, x: near})) for near in (high, low))
        rows.append(_reals(above - below) / (2 * delta))
    dtype = _reals(value).dtype
    if rows:
        return np.array(rows).astype(dtype)
    width = int(np.prod(y_shape, dtype=np.int64)) * (2 if y.dtype.is_complex else 1)
    return np.zeros((0, width), dtype)


def _wide(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
