"""Random forests: trees and what their leaves count are resources of the host.

A training step asks where examples end (`TraverseTreeV4`), adds them to the leaves' predictions
(`UpdateModelV4`) and to the counts of the leaves' candidates (`ProcessInputV4`), and splits the
leaves that have seen enough (`GrowTreeV4`). What programs use is in `contrib/tensor_forest`.
"""

from __future__ import annotations

from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import all_scalar, no_outputs
from opdock.shapes import Shape

__all__: list[str] = []

_NAMED = 'container: string = "", shared_name: string = ""'
_TREE, _STATS = "tree_handle: resource", "stats_handle: resource"
_INPUTS = (
    ", input_data: float, sparse_input_indices: int64, sparse_input_values: float, "
    "sparse_input_shape: int64"
)
_PARAMS, _SPEC = "params: string", "input_spec: string, params: string"


def _handle(name: str) -> OpSpec:
    op = define_op(name, "-> resource: resource", _NAMED, stateful=True).not_differentiable()
    # A kernel finds the place of the resource, or makes it: that is no effect.
    op.declare(Traits(effect=False, merge=False, fold=False))
    return op


def _on(name: str, signature: str, attrs: str = "", *, reads: tuple[str, ...] = ()) -> OpSpec:
    """An op on what stands behind its first inputs; `reads` names those that it leaves alone."""
    op = define_op(name, signature, attrs, stateful=True)
    op.declare(Traits(reads=reads))
    return op.not_differentiable()


_READS_TREE, _READS_STATS = ("tree_handle",), ("stats_handle",)
tree_handle_op = _handle("DecisionTreeResourceHandleOp")
tree_is_initialized_op = _on(
    "TreeIsInitializedOp", f"{_TREE} -> is_initialized: bool", reads=_READS_TREE
)
create_tree_op = _on("CreateTreeVariable", f"{_TREE}, tree_config: string ->", _PARAMS)
serialize_tree_op = _on("TreeSerialize", f"{_TREE} -> tree_config: string", reads=_READS_TREE)
deserialize_tree_op = _on("TreeDeserialize", f"{_TREE}, tree_config: string ->", _PARAMS)
tree_size_op = _on("TreeSize", f"{_TREE} -> tree_size: int32", reads=_READS_TREE)
predictions_op = _on(
    "TreePredictionsV4",
    f"{_TREE}{_INPUTS} -> predictions: float, tree_paths: string",
    _SPEC,
    reads=_READS_TREE,
)
traverse_op = _on(
    "TraverseTreeV4", f"{_TREE}{_INPUTS} -> leaf_ids: int32", _SPEC, reads=_READS_TREE
)
update_model_op = _on(
    "UpdateModelV4",
    f"{_TREE}, leaf_ids: int32, input_labels: float, input_weights: float ->",
    _PARAMS,
)
feature_usage_op = _on(
    "FeatureUsageCounts", f"{_TREE} -> feature_counts: int32", _PARAMS, reads=_READS_TREE
)
stats_handle_op = _handle("FertileStatsResourceHandleOp")
stats_is_initialized_op = _on(
    "FertileStatsIsInitializedOp", f"{_STATS} -> is_initialized: bool", reads=_READS_STATS
)
create_stats_op = _on("CreateFertileStatsVariable", f"{_STATS}, stats_config: string ->", _PARAMS)
serialize_stats_op = _on(
    "FertileStatsSerialize", f"{_STATS} -> stats_config: string", _PARAMS, reads=_READS_STATS
)
deserialize_stats_op = _on("FertileStatsDeserialize", f"{_STATS}, stats_config: string ->", _PARAMS)
process_input_op = _on(
    "ProcessInputV4",
    f"{_TREE}, {_STATS}{_INPUTS}, input_labels: float, input_weights: float, leaf_ids: int32 "
    "-> finished_nodes: int32",
    f"random_seed: int, {_SPEC}",
    reads=_READS_TREE,
)
grow_op = _on("GrowTreeV4", f"{_TREE}, {_STATS}, finished_nodes: int32 ->", _PARAMS)

for _op in (
    tree_handle_op, tree_is_initialized_op, create_tree_op, serialize_tree_op, deserialize_tree_op,
    tree_size_op, stats_handle_op, stats_is_initialized_op, create_stats_op, serialize_stats_op,
    deserialize_stats_op,
):  # fmt: skip
    _op.shape(all_scalar)


@predictions_op.shape
def _predictions_shape(sig: ShapeSig) -> list[Shape]:
    return [(_examples(sig), None), (None,)]


@traverse_op.shape
def _traverse_shape(sig: ShapeSig) -> Shape:
    return (_examples(sig),)


def _examples(sig: ShapeSig) -> int | None:
    """How many examples there are, where the dense features say so: an empty one says nothing."""
    data = sig.shapes[1]
    return (data[0] or None) if data else None


@feature_usage_op.shape
@process_input_op.shape
def _unknown_length(sig: ShapeSig) -> Shape:
    return (None,)


update_model_op.shape(no_outputs)
grow_op.shape(no_outputs)
