"""Gradient boosted trees: the ensemble, a resource of the host, what it predicts and how it grows.

The classes that programs use are in `train/boosted_trees.py`.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import all_scalar
from opdock.shapes import Shape

__all__: list[str] = []

_NAMED = 'container: string = "", shared_name: string = ""'
_ENSEMBLE = "tree_ensemble_handle: resource"


def _on_ensemble(name: str, signature: str, attrs: str = "", *, reads: bool = False) -> OpSpec:
    """An op on the ensemble behind its first input; `reads` says that it leaves it as it is."""
    op = define_op(name, f"{_ENSEMBLE}{signature}", attrs, stateful=True)
    op.declare(Traits(reads=("tree_ensemble_handle",) if reads else ()))
    return op.not_differentiable()


ensemble_handle_op = define_op(
    "BoostedTreesEnsembleResourceHandleOp", "-> resource: resource", _NAMED, stateful=True
).not_differentiable()
# A kernel finds the place of the ensemble, or makes it: that is no effect.
ensemble_handle_op.declare(Traits(effect=False, merge=False, fold=False))
is_initialized_op = _on_ensemble(
    "IsBoostedTreesEnsembleInitialized", " -> is_initialized: bool", reads=True
)
create_ensemble_op = _on_ensemble(
    "BoostedTreesCreateEnsemble", ", stamp_token: int64, tree_ensemble_serialized: string ->"
)
deserialize_ensemble_op = _on_ensemble(
    "BoostedTreesDeserializeEnsemble", ", stamp_token: int64, tree_ensemble_serialized: string ->"
)
serialize_ensemble_op = _on_ensemble(
    "BoostedTreesSerializeEnsemble",
    " -> stamp_token: int64, tree_ensemble_serialized: string",
    reads=True,
)
get_states_op = _on_ensemble(
    "BoostedTreesGetEnsembleStates",
    " -> stamp_token: int64, num_trees: int32, num_finalized_trees: int32, "
    "num_attempted_layers: int32, last_layer_nodes_range: int32",
    reads=True,
)
_BATCH = "num_bucketized_features: int >= 1, logits_dimension: int"
predict_op = _on_ensemble(
    "BoostedTreesPredict",
    ", bucketized_features: num_bucketized_features * int32 -> logits: float",
    _BATCH,
    reads=True,
)
debug_outputs_op = _on_ensemble(
    "BoostedTreesExampleDebugOutputs",
    ", bucketized_features: num_bucketized_features * int32 "
    "-> examples_debug_outputs_serialized: string",
    _BATCH,
    reads=True,
)
training_predict_op = _on_ensemble(
    "BoostedTreesTrainingPredict",
    ", cached_tree_ids: int32, cached_node_ids: int32, "
    "bucketized_features: num_bucketized_features * int32 "
    "-> partial_logits: float, tree_ids: int32, node_ids: int32",
    _BATCH,
    reads=True,
)
update_ensemble_op = _on_ensemble(
    "BoostedTreesUpdateEnsemble",
    ", feature_ids: int32, node_ids: num_features * int32, gains: num_features * float, "
    "thresholds: num_features * int32, left_node_contribs: num_features * float, "
    "right_node_contribs: num_features * float, max_depth: int32, learning_rate: float ->",
    "pruning_mode: int >= 0, num_features: int >= 0",
)
update_ensemble_v2_op = _on_ensemble(
    "BoostedTreesUpdateEnsembleV2",
    ", feature_ids: int32, dimension_ids: num_features * int32, node_ids: num_features * int32, "
    "gains: num_features * float, thresholds: num_features * int32, "
    "left_node_contribs: num_features * float, right_node_contribs: num_features * float, "
    "split_types: num_features * string, max_depth: int32, learning_rate: float, "
    "pruning_mode: int32 ->",
    "num_features: int >= 0",
)
center_bias_op = _on_ensemble(
    "BoostedTreesCenterBias",
    ", mean_gradients: float, mean_hessians: float, l1: float, l2: float "
    "-> continue_centering: bool",
)


for _op in (
    ensemble_handle_op,
    is_initialized_op,
    create_ensemble_op,
    deserialize_ensemble_op,
    serialize_ensemble_op,
):
    _op.shape(all_scalar)


@get_states_op.shape
def _states_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return [(), (), (), (), (2,)]


def _batch_size(given: list[Shape]) -> int | None:
    """The length that vectors have in common."""
    size: int | None = None
    for one in given:
        size = shapes.merge_dim(size, shapes.with_rank(one, 1)[0])
    return size


@predict_op.shape
def _predict_shape(sig: ShapeSig) -> Shape:
    return (_batch_size(list(sig.shapes[1:])), sig.attrs["logits_dimension"])


@debug_outputs_op.shape
def _debug_outputs_shape(sig: ShapeSig) -> Shape:
    return (_batch_size(list(sig.shapes[1:])),)


@training_predict_op.shape
def _training_predict_shape(sig: ShapeSig) -> list[Shape]:
    size = _batch_size(list(sig.shapes[1:]))
    return [(size, sig.attrs["logits_dimension"]), (size,), (size,)]


@update_ensemble_op.shape
@update_ensemble_v2_op.shape
def _update_shape(sig: ShapeSig) -> list[Shape]:
    count = sig.attrs["num_features"]
    shapes.merge(shapes.with_rank(sig.shapes[1], 1), (count,))
    lists = 7 if sig.op.endswith("V2") else 5
    groups = [sig.shapes[2 + i * count : 2 + (i + 1) * count] for i in range(lists)]
    # What the features' lists hold, candidate by candidate; the contributions are columns.
    columns = {lists - 3, lists - 2} if sig.op.endswith("V2") else {lists - 2, lists - 1}
    for of_feature in zip(*groups, strict=True):
        size: int | None = None
        for place, given in enumerate(of_feature):
            known = shapes.with_rank(given, 2 if place in columns else 1)
            size = shapes.merge_dim(size, known[0])
            if place in columns:
                shapes.merge_dim(known[1], 1)
    return []


@center_bias_op.shape
def _center_bias_shape(sig: ShapeSig) -> Shape:
    gradients, hessians = (shapes.with_rank(sig.shapes[i], 2) for i in (1, 2))
    shapes.merge(gradients, hessians)
    for given in sig.shapes[3:]:
        shapes.with_rank(given, 0)
    return ()
