"""Samples of stochastic dual coordinate ascent: examples that share no feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = npt.NDArray[Any]


def _floats(*values: Any) -> Array:
    return np.array(values, np.float32)


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _attrs(kind: str, sparse: int, valued: int, dense: int, **other: Any) -> dict[str, Any]:
    return {
        "loss_type": kind, "num_sparse_features": sparse, "num_dense_features": dense,
        "num_sparse_features_with_values": valued, "l1": 0.0, "l2": 1.0,
        "num_loss_partitions": 1, "num_inner_iterations": 1, **other,
    }  # fmt: skip


# Three examples; the second has two features, the third none of the second group.
_EXAMPLES = [_ints(0, 1, 1, 2), _ints(0, 1)]
_FEATURES = [_ints(7, 3, 5, 9), _ints(0, 1)]
_VALUES = [_floats(1.5, -0.5, 2.0, 1.0)]
_IDS = [_ints(3, 5, 7, 9), _ints(1, 0)]
_WEIGHTS = [_floats(0.4, -0.2, 0.1, 0.3), _floats(0.2, -0.6)]
_LABELS = {"poisson_loss": _floats(2, 0.5, 1), "squared_loss": _floats(-10, 14, 1)}
_BETWEEN = _floats(1, 0, 1)


def _sparse_inputs(kind: str) -> list[Any]:
    state = np.zeros((3, 4), np.float32)
    labels = _LABELS.get(kind, _BETWEEN)
    features = [_EXAMPLES, _FEATURES, _VALUES, []]
    return [*features, _floats(1.0, 2.0, 0.5), labels, _IDS, _WEIGHTS, [], state]


def _dense_inputs(kind: str) -> list[Any]:
    table = np.diag(_floats(1.0, 2.0, -0.5))
    state = np.zeros((3, 4), np.float32)
    state[:, 0] = 0.0 if kind not in ("squared_loss", "poisson_loss") else 0.25
    labels = _LABELS.get(kind, _BETWEEN)
    weights = [_floats(0.3, -0.1, 0.2)]
    return [[], [], [], [table], _floats(1.0, 2.0, 0.5), labels, [], [], weights, state]


def _optimizers(flag: str) -> Any:
    def make(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
        wide: dict[str, Any] = {
            "tol": (1e-5, 1e-5), "tol_reason": "single precision, squared losses of ten",
        }  # fmt: skip
        for kind in ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss",
                     "poisson_loss"):  # fmt: skip
            attrs = _attrs(kind, 2, 1, 0, l2=2.0, l1=0.2, num_loss_partitions=2)
            yield Sample(_sparse_inputs(kind), attrs, f"{kind}-sparse", **wide)
            attrs = _attrs(kind, 0, 0, 1, **{flag: False})
            yield Sample(_dense_inputs(kind), attrs, f"{kind}-dense", **wide)

    return make


for _op, _flag in (("SdcaOptimizer", "adaptative"), ("SdcaOptimizerV2", "adaptive")):
    samples(_op)(_optimizers(_flag))


@samples("SdcaShrinkL1")
def shrunk(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Weights on both sides of what they shrink by."""
    weights = [_floats(0.5, -0.1, 0.05, -2.0), _floats([0.2, -0.3])]
    yield Sample([weights], {"num_features": 2, "l1": 0.1, "l2": 1.0}, "two")
    yield Sample([weights[:1]], {"num_features": 1, "l1": 0.0, "l2": 0.5}, "nothing")


@samples("SdcaFprint")
def fingerprints(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Strings of all lengths at which the hash changes its way."""
    lengths = (0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 143, 144, 145, 199, 272, 305)
    texts = [bytes((7 * i + n) % 251 for i in range(n)) for n in lengths]
    yield Sample([np.array([*texts, b""], object)[:-1]], {}, "lengths")
    yield Sample([np.array([], object)], {}, "none")


@error_samples("SdcaOptimizer", "SdcaOptimizerV2")
def misfits() -> Iterable[ErrorSample]:
    """State of another shape; labels of no class; features that no weight is for, or twice."""
    attrs = _attrs("logistic_loss", 2, 1, 0)
    good = _sparse_inputs("logistic_loss")
    second = _FEATURES[1]
    for at, value, text in (
        (-1, np.zeros((2, 4), np.float32), r"Expected shape \[3,4\] for example_state_data"),
        (5, _floats(0, 2, 1), "Only labels of 0.0 or 1.0 are supported right now"),
        (1, [_ints(7, 3, 4, 9), second], "Found sparse feature indices out of valid range: 4"),
        (1, [_ints(7, 3, 3, 9), second], "Duplicate index in sparse vector"),
        (0, [_ints(0, 1, 1, 3), _EXAMPLES[1]], "Expected sparse_example_indices in ascending"),
        (1, [_ints(7, 3, 5), second], "Expected as many sparse_example_indices"),
        (7, [_floats(1, 2, 3), _WEIGHTS[1]], "Expected as many sparse_weights as sparse_indices"),
    ):
        bad = list(good)
        bad[at] = value
        yield ErrorSample(bad, attrs, match=text, tag=text[:24])
    attrs, good = _attrs("poisson_loss", 0, 0, 1), _dense_inputs("poisson_loss")
    wide = [*good[:3], [np.ones((3, 4), np.float32)], *good[4:]]
    yield ErrorSample(wide, attrs, match="More dense features than we have parameters for: 4")
    below = [*good[:5], _floats(1, -1, 0), *good[6:]]
    yield ErrorSample(below, attrs, match="Only non-negative labels can be used", tag="counts")
    none = [*good[:3], [], *good[4:8], [], good[9]]
    needs = "Requires at least one feature to train"
    yield ErrorSample(none, _attrs("hinge_loss", 0, 0, 0), match=needs, tag="nothing")


@error_samples("SdcaFprint")
def matrices() -> Iterable[ErrorSample]:
    """No vector."""
    matrix = np.array([[b"a"]], object)
    yield ErrorSample([matrix], {}, match="must be rank 1|must be a vector")
