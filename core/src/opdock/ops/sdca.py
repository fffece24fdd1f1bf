"""Stochastic dual coordinate ascent: linear models trained one example at a time, to optimality."""

from __future__ import annotations

from typing import Final

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__: list[str] = []

_INPUTS: Final = (
    "sparse_example_indices: num_sparse_features * int64, "
    "sparse_feature_indices: num_sparse_features * int64, "
    "sparse_feature_values: num_sparse_features_with_values * float, "
    "dense_features: num_dense_features * float, example_weights: float, example_labels: float, "
    "sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float, "
    "dense_weights: num_dense_features * float, example_state_data: float "
    "-> out_example_state_data: float, out_delta_sparse_weights: num_sparse_features * float, "
    "out_delta_dense_weights: num_dense_features * float"
)
_LOSSES: Final = (
    "{'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'}"
)
_ATTRS: Final = (
    "num_sparse_features: int >= 0, num_sparse_features_with_values: int >= 0, "
    "num_dense_features: int >= 0, l1: float, l2: float, num_loss_partitions: int >= 1, "
    "num_inner_iterations: int >= 1"
)

sdca_optimizer_op = define_op(
    "SdcaOptimizer", _INPUTS, f"loss_type: {_LOSSES}, adaptative: bool = false, {_ATTRS}"
).not_differentiable()
sdca_optimizer_v2_op = define_op(
    "SdcaOptimizerV2", _INPUTS, f"loss_type: {_LOSSES}, adaptive: bool = false, {_ATTRS}"
).not_differentiable()
sdca_shrink_l1_op = define_op(
    "SdcaShrinkL1", "weights: num_features * Ref(float)",
    "num_features: int >= 0, l1: float, l2: float",
).not_differentiable()  # fmt: skip
sdca_fprint_op = define_op("SdcaFprint", "input: string -> output: int64").not_differentiable()

for _op in (sdca_optimizer_op, sdca_optimizer_v2_op):
    _op.declare(Traits(cost=Cost.PRODUCT))


@sdca_optimizer_op.shape
@sdca_optimizer_v2_op.shape
def _optimizer_shape(sig: ShapeSig) -> list[Shape]:
    deltas = sig.attrs["num_sparse_features"] + sig.attrs["num_dense_features"]
    weights = sig.shapes[len(sig.shapes) - 1 - deltas : -1]
    return [(None, 4), *weights]


@sdca_shrink_l1_op.shape
def _shrink_shape(sig: ShapeSig) -> list[Shape]:
    return []


@sdca_fprint_op.shape
def _fprint_shape(sig: ShapeSig) -> Shape:
    return (*shapes.with_rank(sig.shapes[0], 1), 2)
