"""Rows of saved matrices for the words of a new vocabulary."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__: list[str] = []

# Stateful, unlike TF's definition: the answer is the file system's, so it is never folded.
generate_vocab_remapping_op = define_op(
    "GenerateVocabRemapping",
    "new_vocab_file: string, old_vocab_file: string -> remapping: int64, num_present: int32",
    "new_vocab_offset: int >= 0, num_new_vocab: int >= 0, old_vocab_size: int >= -1 = -1",
    stateful=True,
).not_differentiable()
load_and_remap_matrix_op = define_op(
    "LoadAndRemapMatrix",
    "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
    "initializing_values: float -> output_matrix: float",
    "num_rows: int >= 0, num_cols: int >= 1, max_rows_in_memory: int = -1",
    stateful=True,
).not_differentiable()
for _op in (generate_vocab_remapping_op, load_and_remap_matrix_op):
    _op.declare(Traits(cost=Cost.WAIT))


@generate_vocab_remapping_op.shape
def _remapping_shape(sig: ShapeSig) -> list[Shape]:
    for shape in sig.shapes:
        shapes.with_rank(shape, 0)
    return [(sig.attrs["num_new_vocab"],), ()]


@load_and_remap_matrix_op.shape
def _matrix_shape(sig: ShapeSig) -> Shape:
    # The path may be a vector of one element.
    shapes.with_rank(sig.shapes[1], 0)
    return (sig.attrs["num_rows"], sig.attrs["num_cols"])
