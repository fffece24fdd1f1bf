"""`tf.sparse`: sparse tensors and what is done with them."""

from __future__ import annotations

from opdock.graph.nodes.composite import SparseTensor
from opdock.ops.composed.masks import sparse_mask as mask
from opdock.ops.composed.sparse import (
    from_dense,
    sparse_concat,
    sparse_expand_dims,
    sparse_eye,
    sparse_fill_empty_rows,
    sparse_reorder,
    sparse_reset_shape,
    sparse_reshape,
    sparse_retain,
    sparse_slice,
    sparse_split,
    sparse_tensor_to_dense,
    sparse_transpose,
)
from opdock.ops.composed.sparse_values import (
    sparse_add,
    sparse_maximum,
    sparse_merge,
    sparse_minimum,
    sparse_reduce_max,
    sparse_reduce_max_sparse,
    sparse_reduce_sum,
    sparse_reduce_sum_sparse,
    sparse_softmax,
    sparse_tensor_dense_matmul,
    sparse_to_indicator,
)  # fmt: skip
from opdock.ops.identity import sparse_placeholder
from opdock.ops.sparse_cross import sparse_cross, sparse_cross_hashed
from opdock.ops.sparse_segment import (
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)  # fmt: skip

add = sparse_add
concat = sparse_concat
cross = sparse_cross
cross_hashed = sparse_cross_hashed
expand_dims = sparse_expand_dims
eye = sparse_eye
fill_empty_rows = sparse_fill_empty_rows
matmul = sparse_tensor_dense_matmul
maximum = sparse_maximum
merge = sparse_merge
minimum = sparse_minimum
placeholder = sparse_placeholder
reduce_max = sparse_reduce_max
reduce_max_sparse = sparse_reduce_max_sparse
reduce_sum = sparse_reduce_sum
reduce_sum_sparse = sparse_reduce_sum_sparse
reorder = sparse_reorder
reset_shape = sparse_reset_shape
reshape = sparse_reshape
retain = sparse_retain
segment_mean = sparse_segment_mean
segment_sqrt_n = sparse_segment_sqrt_n
segment_sum = sparse_segment_sum
slice = sparse_slice
softmax = sparse_softmax
sparse_dense_matmul = sparse_tensor_dense_matmul
split = sparse_split
to_dense = sparse_tensor_to_dense
to_indicator = sparse_to_indicator
transpose = sparse_transpose

__all__ = [
    "SparseTensor", "add", "concat", "cross", "cross_hashed", "expand_dims", "eye",
    "fill_empty_rows", "from_dense", "mask", "matmul", "maximum", "merge", "minimum", "placeholder",
    "reduce_max", "reduce_max_sparse", "reduce_sum", "reduce_sum_sparse", "reorder", "reset_shape",
    "reshape", "retain", "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax",
    "sparse_dense_matmul", "split", "to_dense", "to_indicator", "transpose",
]  # fmt: skip
