"""Samples of the optimizers' update ops: variables in, new values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = npt.NDArray[Any]

_VALUES = {
    "lr": 0.1, "alpha": 0.1, "rho": 0.8, "momentum": 0.7, "epsilon": 0.01, "beta1": 0.8,
    "beta2": 0.9, "beta1_power": 0.64, "beta2_power": 0.81, "l1": 0.05, "l2": 0.2,
    "l2_shrinkage": 0.1, "lr_power": -0.5, "sign_decay": 0.6, "beta": 0.8, "logbase": 0.7,
}  # fmt: skip
_LAYOUTS = {
    "GradientDescent": ("var", "alpha delta"),
    "Momentum": ("var accum", "lr grad momentum"),
    "KerasMomentum": ("var accum", "lr grad momentum"),
    "Adagrad": ("var accum", "lr grad"),
    "AdagradDA": ("var ga gg", "grad lr l1 l2 global_step"),
    "Adadelta": ("var accum accum_update", "lr rho epsilon grad"),
    "Adam": ("var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad"),
    "AdaMax": ("var m v", "beta1_power lr beta1 beta2 epsilon grad"),
    "AddSign": ("var m", "lr alpha sign_decay beta grad"),
    "PowerSign": ("var m", "lr logbase sign_decay beta grad"),
    "RMSProp": ("var ms mom", "lr rho momentum epsilon grad"),
    "CenteredRMSProp": ("var mg ms mom", "lr rho momentum epsilon grad"),
    "Ftrl": ("var accum linear", "grad lr l1 l2 lr_power"),
    "FtrlV2": ("var accum linear", "grad lr l1 l2 l2_shrinkage lr_power"),
    "ProximalAdagrad": ("var accum", "lr l1 l2 grad"),
    "ProximalGradientDescent": ("var", "alpha l1 l2 delta"),
}
_FLAGS = {
    "Momentum": "use_nesterov", "KerasMomentum": "use_nesterov", "Adam": "use_nesterov",
    "Adagrad": "update_slots",
}  # fmt: skip
_SHAPES: dict[str, tuple[int, ...]] = {
    "plain": (3, 2), "scalar": (), "empty": (0, 2), "rank4": (2, 1, 3, 2),
}  # fmt: skip
_DENSE_ONLY = ("GradientDescent", "KerasMomentum", "Adam", "AdaMax", "AddSign", "PowerSign")
_TOL: dict[str, Any] = {"grad": False}


def _state(name: str, shape: tuple[int, ...], rng: Sampler) -> Array:
    """Accumulators of squares are positive, and centred ones exceed the square of the mean."""
    if name in ("var", "m", "mom", "linear", "ga"):
        return rng.normal(shape)
    if name == "mg":
        return rng.uniform(shape, -0.5, 0.5)
    return rng.uniform(shape, 1.0, 2.0)


def _inputs(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: Sampler, rows: Array | None
) -> list[Any]:
    states, others = _LAYOUTS[name]
    out: list[Any] = [_state(s, shape, rng) for s in states.split()]
    for other in others.split():
        if other in ("grad", "delta"):
            out.append(rng.normal(shape if rows is None else (len(rows), *shape[1:])))
            if rows is not None:
                out.append(rows)
        elif other == "global_step":
            out.append(np.array(3, np.int64))
        else:
            out.append(np.array(_VALUES[other]).astype(dtype))
    return out


def _reason(dtype: np.dtype[Any]) -> dict[str, Any]:
    if dtype.name in ("float16", "bfloat16"):
        wide = 0.02 if dtype.name == "float16" else 0.1
        return {**_TOL, "tol": (wide, wide), "tol_reason": "several roundings in half precision"}
    return _TOL


def _dense(name: str) -> Callable[[np.dtype[Any], Sampler], Iterator[Sample]]:
    def make(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
        if dtype.kind in "iu":
            return  # The formulas hold rates between zero and one.
        for tag, shape in _SHAPES.items():
            yield Sample(_inputs(name, shape, dtype, rng, None), {}, tag, **_reason(dtype))
        if name in _FLAGS:
            flag = _FLAGS[name]
            attrs = {flag: flag != "update_slots"}
            yield Sample(_inputs(name, (3, 2), dtype, rng, None), attrs, flag, **_reason(dtype))

    return make


def _sparse(name: str) -> Callable[[np.dtype[Any], Sampler], Iterator[Sample]]:
    def make(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
        if dtype.kind in "iu":
            return
        for tag, shape, rows in (
            ("plain", (5, 2), np.array([3, 0], np.int32)),
            ("long", (4, 3, 2), np.array([1, 3, 0], np.int64)),
            ("no-rows", (4, 2), np.zeros((0,), np.int32)),
        ):
            yield Sample(_inputs(name, shape, dtype, rng, rows), {}, tag, **_reason(dtype))
        if name in _FLAGS and name != "Adam":
            flag = _FLAGS[name]
            inputs = _inputs(name, (5, 2), dtype, rng, np.array([4, 1], np.int32))
            yield Sample(inputs, {flag: flag != "update_slots"}, flag, **_reason(dtype))

    return make


for _name in _LAYOUTS:
    _ops = [f"ResourceApply{_name}"] if _name == "KerasMomentum" else [
        f"Apply{_name}", f"ResourceApply{_name}"
    ]  # fmt: skip
    samples(*_ops)(_dense(_name))
    if _name not in _DENSE_ONLY:
        samples(f"SparseApply{_name}", f"ResourceSparseApply{_name}")(_sparse(_name))


@error_samples("ApplyGradientDescent")
def bad_gradient_shape() -> Iterable[ErrorSample]:
    """A gradient of another shape than the variable."""
    inputs = [np.zeros((2, 3), np.float32), np.float32(0.1), np.zeros((3, 2), np.float32)]
    yield ErrorSample(inputs, {}, "ValueError", "must be equal", "build")
    yield ErrorSample(inputs, {}, match="")


@error_samples("SparseApplyMomentum")
def bad_row() -> Iterable[ErrorSample]:
    """A row that the variable does not have."""
    rng = Sampler(np.float32, "bad row")
    dtype = np.dtype(np.float32)
    inputs = _inputs("Momentum", (3, 2), dtype, rng, np.array([0, 3], np.int32))
    yield ErrorSample(inputs, {}, match="ind")
