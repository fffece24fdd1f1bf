"""The gradient checker: `tf.test.compute_gradient(_error)`.

Compares the Jacobian by reverse mode with central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.autodiff.gradients import gradients
from opdock.autodiff.tape import GradientTape
from opdock.graph.nodes.composite import IndexedSlices, IndexedSlicesValue
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import executing_eagerly

Array = np.ndarray[Any, Any]
Of = Callable[[Array], Any]
"""Some result for the value of a tensor."""


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
    like = np.zeros(tuple(y_shape), y.dtype.base_dtype.np)

    def fed(fetched: Any, tensor: Any) -> Of:
        return lambda value: session.run(fetched, {**feeds, tensor: value})

    out = [
        (
            _theoretical(None if grad is None else fed(grad, weights), value, like),
            _numerical(fed(y, tensor), value, like, delta),
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
    """The largest difference between the two Jacobians of `compute_gradient`.

    Args:
        x: a tensor, or a list of them.
        x_shape: its shape, or theirs.
        y: the tensor that is differentiated.
        y_shape: its shape.
        x_init_value: the value of `x`; random by default.
        delta: the step of the differences.
        init_targets: what is run first.
        extra_feed_dict: what is fed beside `x`.
    """
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
        ValueError: `x` is no list, or there is no default session, which a graph needs.
    """
    if not isinstance(x, list):
        raise ValueError(f"`x` must be a list of Tensors (arguments to `f`), not a {type(x)}")
    if executing_eagerly():
        return _eagerly(f, [convert_to_tensor(v) for v in x], delta)
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


def _eagerly(
    f: Callable[..., Tensor], xs: list[Tensor], delta: float
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The Jacobians of a function whose operations run when it is called."""
    with GradientTape(persistent=True) as tape:
        for x in xs:
            tape.watch(x)
        y = f(*xs)
    like = np.zeros_like(_numbers(y))

    def gradient_of(x: Tensor) -> Of | None:
        def weighted(unit: Array) -> Any:
            return tape.gradient(y, x, output_gradients=convert_to_tensor(unit))

        return None if weighted(like) is None else lambda unit: _numbers(weighted(unit))

    def call_of(place: int) -> Of:
        def call(value: Array) -> Array:
            given = [convert_to_tensor(value) if i == place else x for i, x in enumerate(xs)]
            return _numbers(f(*given))

        return call

    values = [np.array(_numbers(x)) for x in xs]
    theoretical = [_theoretical(gradient_of(x), v, like) for x, v in zip(xs, values, strict=True)]
    numerical = [_numerical(call_of(i), v, like, delta) for i, v in enumerate(values)]
    return tuple(theoretical), tuple(numerical)


def _numbers(value: Any) -> Array:
    """The value of an eager tensor, or of slices."""
    tensor: Any = convert_to_tensor(value)
    return np.asarray(tensor.numpy())


def to_numpy(value: Any) -> Any:
    """The array behind a tensor, or behind slices, whose rows of the same index add up."""
    if isinstance(value, IndexedSlicesValue):
        out = np.zeros(value.dense_shape)
        np.add.at(out, value.indices, value.values)
        return out
    if isinstance(value, (IndexedSlices, Tensor)) and not executing_eagerly():
        return to_numpy(get_default_session().run(value))
    return _numbers(value) if isinstance(value, (IndexedSlices, Tensor)) else value


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


def _theoretical(gradient: Of | None, value: Array, like: Array) -> Array:
    """The Jacobian, from the gradient of a result like `like` that is weighted by an array."""
    unit = np.zeros_like(like)
    units = _reals(unit)
    x_reals = _reals(value)
    jacobian = np.zeros((x_reals.size, units.size), np.result_type(x_reals.dtype, np.float32))
    if gradient is None:
        return jacobian
    for column in range(units.size):
        units[column] = 1
        jacobian[:, column] = _reals(np.asarray(gradient(unit)))
        units[column] = 0
    if not units.size:
        _check_empty(np.asarray(gradient(unit)), value)
    return jacobian


def _check_empty(found: Array, value: Array) -> None:
    """Of a y without elements the gradients are zeros of x's shape; no column would tell."""
    if found.shape != value.shape:
        raise ValueError(
            f"Empty gradient has wrong shape: expected {value.shape}, got {found.shape}"
        )
    if found.any():
        raise ValueError("Empty tensor with nonzero gradients")


def _numerical(call: Of, value: Array, like: Array, delta: float) -> Array:
    """The Jacobian by central differences of a result like `like`."""
    rows = []
    for i in range(_reals(value).size):
        low, high = value.copy(), value.copy()
        _reals(low)[i] -= delta
        _reals(high)[i] += delta
        above, below = (_wide(call(near)) for near in (high, low))
        rows.append(_reals(above - below) / (2 * delta))
    dtype = _reals(value).dtype
    return np.array(rows).astype(dtype) if rows else np.zeros((0, _reals(like).size), dtype)


def _wide(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
