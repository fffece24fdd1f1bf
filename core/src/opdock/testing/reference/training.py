"""Oracle of the optimizers' update ops: the formulas of their papers, in TensorFlow's order.

Each function takes the old state and the hyper-parameters by TF's argument names and returns the
new state.  The dense op applies it to the whole variable, the sparse op to the rows it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]
Update = Callable[..., tuple[Array, ...]]

UPDATES: dict[str, tuple[str, str]] = {}
"""Optimizer -> names of the states, names of the other inputs; for whoever makes samples."""

NO_SPARSE = ("Adam", "AdaMax", "AddSign", "PowerSign")


def update(name: str, states: str, inputs: str) -> Callable[[Update], Update]:
    """Registers a formula for all ops of one optimizer: dense, sparse, on references, on handles.

    Args:
      name: "Adam" for ApplyAdam.
      states: names of the variable and its slots.
      inputs: names of the other inputs of the dense op; the sparse op has "indices" behind the
        gradient.
    """
    UPDATES[name] = (states, inputs)
    count, names = len(states.split()), inputs.split()
    gradient = "delta" if "delta" in names else "grad"

    def register(fn: Update) -> Update:
        def dense(attrs: Attrs, *values: Array) -> tuple[Array, ...]:
            return fn(attrs, *values[:count], **dict(zip(names, values[count:], strict=True)))

        def sparse(attrs: Attrs, *values: Array) -> tuple[Array, ...]:
            state, rest = [v.copy() for v in values[:count]], list(values[count:])
            rows = rest.pop(names.index(gradient) + 1)
            given = dict(zip(names, rest, strict=True))
            slopes = given.pop(gradient)
            for slope, row in zip(slopes, rows, strict=True):
                fresh = fn(attrs, *(s[row] for s in state), **{**given, gradient: slope})
                for old, new in zip(state, fresh, strict=True):
                    old[row] = new
            return tuple(state)

        reference(f"Apply{name}", f"ResourceApply{name}")(dense)
        if name == "GradientDescent" or name in NO_SPARSE or name == "KerasMomentum":
            return fn
        reference(f"SparseApply{name}", f"ResourceSparseApply{name}")(sparse)
        return fn

    return register


@update("GradientDescent", "var", "alpha delta")
def gradient_descent(attrs: Attrs, var: Array, alpha: Array, delta: Array) -> tuple[Array, ...]:
    """A step down the gradient."""
    return (var - alpha * delta,)


@update("Momentum", "var accum", "lr grad momentum")
def momentum(
    attrs: Attrs, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array
) -> tuple[Array, ...]:
    """Polyak's heavy ball; with `use_nesterov` Nesterov's look ahead."""
    accum = accum * momentum + grad
    step = grad + accum * momentum if attrs["use_nesterov"] else accum
    return var - lr * step, accum


@update("KerasMomentum", "var accum", "lr grad momentum")
def keras_momentum(
    attrs: Attrs, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array
) -> tuple[Array, ...]:
    """The same with the learning rate inside the accumulator."""
    accum = accum * momentum - lr * grad
    step = accum * momentum - lr * grad if attrs["use_nesterov"] else accum
    return var + step, accum


@update("Adagrad", "var accum", "lr grad")
def adagrad(attrs: Attrs, var: Array, accum: Array, lr: Array, grad: Array) -> tuple[Array, ...]:
    """Steps shrink with the sum of squared gradients."""
    if attrs["update_slots"]:
        accum = accum + grad**2
    return var - lr * grad / np.sqrt(accum), accum


@update("AdagradDA", "var gradient_accumulator gradient_squared_accumulator",
        "grad lr l1 l2 global_step")  # fmt: skip
def adagrad_da(
    attrs: Attrs, var: Array, total: Array, squares: Array, *, grad: Array, lr: Array, l1: Array,
    l2: Array, global_step: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Dual averaging: the variable follows from the accumulated gradients alone."""
    total, squares = total + grad, squares + grad**2
    shrunk = np.sign(total) * np.maximum(np.abs(total) - l1 * global_step, 0) if l1 > 0 else total
    return -lr * shrunk / (l2 * global_step * lr + np.sqrt(squares)), total, squares


@update("Adadelta", "var accum accum_update", "lr rho epsilon grad")
def adadelta(
    attrs: Attrs, var: Array, accum: Array, accum_update: Array, lr: Array, rho: Array,
    epsilon: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The ratio of two running averages is the step size."""
    accum = rho * accum + (1 - rho) * grad**2
    step = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    return var - lr * step, accum, rho * accum_update + (1 - rho) * step**2


@update("Adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad")
def adam(
    attrs: Attrs, var: Array, m: Array, v: Array, *, beta1_power: Array, beta2_power: Array,
    lr: Array, beta1: Array, beta2: Array, epsilon: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Running mean and square of the gradient, corrected for their start at zero."""
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    ahead = beta1 * m + (1 - beta1) * grad if attrs.get("use_nesterov") else m
    return var - rate * ahead / (np.sqrt(v) + epsilon), m, v


@update("AdaMax", "var m v", "beta1_power lr beta1 beta2 epsilon grad")
def ada_max(
    attrs: Attrs, var: Array, m: Array, v: Array, *, beta1_power: Array, lr: Array, beta1: Array,
    beta2: Array, epsilon: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Adam with the largest gradient in place of the square."""
    m = beta1 * m + (1 - beta1) * grad
    v = np.maximum(beta2 * v, np.abs(grad))
    return var - lr / (1 - beta1_power) * m / (v + epsilon), m, v


@update("AddSign", "var m", "lr alpha sign_decay beta grad")
def add_sign(
    attrs: Attrs, var: Array, m: Array, *, lr: Array, alpha: Array, sign_decay: Array, beta: Array,
    grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """A gradient whose running average has its sign counts more, another one less."""
    m = beta * m + (1 - beta) * grad
    return var - lr * (alpha + sign_decay * np.sign(grad * m)) * grad, m


@update("PowerSign", "var m", "lr logbase sign_decay beta grad")
def power_sign(
    attrs: Attrs, var: Array, m: Array, *, lr: Array, logbase: Array, sign_decay: Array,
    beta: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The same by a factor: the base where the signs agree, its inverse where they do not."""
    m = beta * m + (1 - beta) * grad
    return var - lr * np.exp(logbase * sign_decay * np.sign(grad * m)) * grad, m


@update("RMSProp", "var ms mom", "lr rho momentum epsilon grad")
def rms_prop(
    attrs: Attrs, var: Array, ms: Array, mom: Array, *, lr: Array, rho: Array, momentum: Array,
    epsilon: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradient over its running root mean square."""
    ms = rho * ms + (1 - rho) * grad**2
    mom = momentum * mom + lr * grad / np.sqrt(ms + epsilon)
    return var - mom, ms, mom


@update("CenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon grad")
def centered_rms_prop(
    attrs: Attrs, var: Array, mg: Array, ms: Array, mom: Array, *, lr: Array, rho: Array,
    momentum: Array, epsilon: Array, grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradient over its running standard deviation."""
    mg = rho * mg + (1 - rho) * grad
    ms = rho * ms + (1 - rho) * grad**2
    mom = momentum * mom + lr * grad / np.sqrt(ms - mg**2 + epsilon)
    return var - mom, mg, ms, mom


@update("Ftrl", "var accum linear", "grad lr l1 l2 lr_power")
def ftrl(
    attrs: Attrs, var: Array, accum: Array, linear: Array, *, grad: Array, lr: Array, l1: Array,
    l2: Array, lr_power: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Follow the regularized leader, per coordinate."""
    return _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power)


@update("FtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power")
def ftrl_v2(
    attrs: Attrs, var: Array, accum: Array, linear: Array, *, grad: Array, lr: Array, l1: Array,
    l2: Array, l2_shrinkage: Array, lr_power: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """The same with a pull towards zero that does not enter the accumulator."""
    shrunk = grad + 2 * l2_shrinkage * var
    return _ftrl(var, accum, linear, grad, shrunk, lr, l1, l2, lr_power)


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, shrunk: Array, lr: Array, l1: Array,
    l2: Array, lr_power: Array,
) -> tuple[Array, ...]:  # fmt: skip
    more = accum + grad**2
    linear = linear + shrunk - (more**-lr_power - accum**-lr_power) / lr * var
    curvature = more**-lr_power / lr + 2 * l2
    active = np.abs(linear) > l1
    return np.where(active, (np.sign(linear) * l1 - linear) / curvature, 0.0), more, linear


def _proximal(point: Array, rate: Array, l1: Array, l2: Array) -> Array:
    """The minimum of the regularizer close to a point: shrink by l1, scale by l2."""
    if l1 > 0:
        point = np.sign(point) * np.maximum(np.abs(point) - rate * l1, 0)
    return np.asarray(point / (1 + l2 * rate))


@update("ProximalAdagrad", "var accum", "lr l1 l2 grad")
def proximal_adagrad(
    attrs: Attrs, var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array
) -> tuple[Array, ...]:
    """Adagrad's step, then the proximal one."""
    accum = accum + grad**2
    rate = lr / np.sqrt(accum)
    return _proximal(var - rate * grad, rate, l1, l2), accum


@update("ProximalGradientDescent", "var", "alpha l1 l2 delta")
def proximal_gradient_descent(
    attrs: Attrs, var: Array, alpha: Array, l1: Array, l2: Array, delta: Array
) -> tuple[Array, ...]:
    """A step down the gradient, then the proximal one."""
    return (_proximal(var - alpha * delta, alpha, l1, l2),)
