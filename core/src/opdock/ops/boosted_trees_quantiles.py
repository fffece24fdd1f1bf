"""Gradient boosted trees: where the buckets of a feature begin, from quantiles of its values.

A summary is a matrix with a row for each value that it keeps: the value, its weight, and the
least and the greatest rank that it may have. Streams of summaries are a resource of the host.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import all_scalar
from opdock.shapes import Shape

__all__: list[str] = []

_COUNT = "num_features: int >= 0"
_HANDLE = "quantile_stream_resource_handle"


def _on_streams(name: str, signature: str, attrs: str = "", *, reads: bool = False) -> OpSpec:
    """An op on the streams behind its first input; `reads` says that it leaves them alone."""
    op = define_op(name, f"{_HANDLE}: resource{signature}", attrs, stateful=True)
    op.declare(Traits(reads=(_HANDLE,) if reads else ()))
    return op.not_differentiable()


make_summaries_op = define_op(
    "BoostedTreesMakeQuantileSummaries",
    "float_values: num_features * float, example_weights: float, epsilon: float "
    "-> summaries: num_features * float",
    _COUNT,
).not_differentiable()
bucketize_op = define_op(
    "BoostedTreesBucketize",
    "float_values: num_features * float, bucket_boundaries: num_features * float "
    "-> buckets: num_features * int32",
    _COUNT,
).not_differentiable()
streams_handle_op = define_op(
    "BoostedTreesQuantileStreamResourceHandleOp", "-> resource: resource",
    'container: string = "", shared_name: string = ""', stateful=True,
).not_differentiable()  # fmt: skip
# A kernel finds the place of the streams, or makes it: that is no effect.
streams_handle_op.declare(Traits(effect=False, merge=False, fold=False))
is_initialized_op = _on_streams(
    "IsBoostedTreesQuantileStreamResourceInitialized", " -> is_initialized: bool", reads=True
)
create_streams_op = _on_streams(
    "BoostedTreesCreateQuantileStreamResource", ", epsilon: float, num_streams: int64 ->",
    "max_elements: int = 1099511627776",
)  # fmt: skip
add_summaries_op = _on_streams(
    "BoostedTreesQuantileStreamResourceAddSummaries", ", summaries: num_features * float ->", _COUNT
)
deserialize_op = _on_streams(
    "BoostedTreesQuantileStreamResourceDeserialize", ", bucket_boundaries: num_streams * float ->",
    "num_streams: int",
)  # fmt: skip
flush_op = _on_streams(
    "BoostedTreesQuantileStreamResourceFlush", ", num_buckets: int64 ->",
    "generate_quantiles: bool = false",
)  # fmt: skip
flush_summaries_op = _on_streams(
    "BoostedTreesFlushQuantileSummaries", " -> summaries: num_features * float", _COUNT
)
boundaries_op = _on_streams(
    "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
    " -> bucket_boundaries: num_features * float", _COUNT, reads=True,
)  # fmt: skip


@make_summaries_op.shape
def _make_summaries_shape(sig: ShapeSig) -> list[Shape]:
    *features, weights, epsilon = sig.shapes
    for given in (*features, weights):
        shapes.with_rank(given, 1)
    shapes.with_rank(epsilon, 0)
    return [(None, 4)] * len(features)


@bucketize_op.shape
def _bucketize_shape(sig: ShapeSig) -> list[Shape]:
    values = [shapes.with_rank(given, 1) for given in sig.shapes[: sig.attrs["num_features"]]]
    for given in values:
        shapes.merge_dim(given[0], values[0][0])
    return list(values)


for _op in (
    streams_handle_op,
    is_initialized_op,
    create_streams_op,
    flush_op,
):
    _op.shape(all_scalar)


@add_summaries_op.shape
def _add_summaries_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    for given in sig.shapes[1:]:
        shapes.merge_dim(shapes.with_rank(given, 2)[1], 4)
    return []


@deserialize_op.shape
def _deserialize_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    for given in sig.shapes[1:]:  # TF 1.15 asks for scalars here, which its kernel refuses
        shapes.with_rank(given, 1)
    return []


@flush_summaries_op.shape
def _flush_summaries_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return [(None, 4)] * sig.n_outputs


@boundaries_op.shape
def _boundaries_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return [(None,)] * sig.n_outputs
