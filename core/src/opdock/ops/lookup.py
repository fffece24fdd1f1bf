"""Lookup tables: the ops. The classes that programs use are in `opdock.lookup`.

A table is a resource on the host, known by its container and name. The ops whose names end with
V2 take a handle, the older ones a reference; both are the table to a kernel.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape

__all__: list[str] = []

_NAMED = (
    "container: string = '', shared_name: string = '', use_node_name_sharing: bool = false, "
    "key_dtype: type, value_dtype: type"
)
_VALUES = f"{_NAMED}, value_shape: shape = []"
_DENSE = f"{_VALUES}, initial_num_buckets: int = 131072, max_load_factor: float = 0.8"


# ---------------------------------------------------------------- tables
def _table(name: str, attrs: str, inputs: str = "") -> None:
    for suffix, handle in (("", "Ref(string)"), ("V2", "resource")):
        taken = inputs if suffix else inputs.partition(",")[0]
        signature = f"{taken} -> table_handle: {handle}"
        op = define_op(f"{name}{suffix}", signature, attrs, stateful=True)
        # A kernel finds the table, or makes it: that is no effect, and nothing holds a variable.
        op.declare(Traits(effect=False, merge=False, fold=False)).not_differentiable()
        op.shape(_handle_shape)


def _handle_shape(sig: ShapeSig) -> Shape:
    if sig.op.startswith("MutableDense") and sig.shapes[0] is not None:
        shapes.with_rank_at_most(sig.shapes[0], 1)
    return () if sig.op.endswith("V2") else (2,)


_table("HashTable", _NAMED)
_table("MutableHashTable", _NAMED)
_table("MutableHashTableOfTensors", _VALUES)
# The older op has no deleted key.
_table("MutableDenseHashTable", _DENSE, "empty_key: key_dtype, deleted_key: key_dtype")


# ---------------------------------------------------------------- what is done with them
def _on_table(name: str, signature: str, attrs: str, reads: bool) -> tuple[OpSpec, ...]:
    found = []
    for suffix, handle in (("", "Ref(string)"), ("V2", "resource")):
        if name == "LookupTableRemove" and not suffix:
            continue
        op = define_op(
            f"{name}{suffix}", f"table_handle: {handle}{signature}", attrs, stateful=True
        )
        kept = ("table_handle",) if reads else ()
        op.declare(Traits(reads=kept, settled=reads)).not_differentiable()
        found.append(op)
    return tuple(found)


find_ops = _on_table(
    "LookupTableFind", ", keys: Tin, default_value: Tout -> values: Tout", "Tin: type, Tout: type",
    reads=True,
)  # fmt: skip
insert_ops = _on_table(
    "LookupTableInsert", ", keys: Tin, values: Tout ->", "Tin: type, Tout: type", reads=False
)
remove_ops = _on_table("LookupTableRemove", ", keys: Tin ->", "Tin: type", reads=False)
size_ops = _on_table("LookupTableSize", " -> size: int64", "", reads=True)
export_ops = _on_table(
    "LookupTableExport", " -> keys: Tkeys, values: Tvalues", "Tkeys: type, Tvalues: type",
    reads=True,
)  # fmt: skip
import_ops = _on_table(
    "LookupTableImport", ", keys: Tin, values: Tout ->", "Tin: type, Tout: type", reads=False
)
initialize_ops = _on_table(
    "InitializeTable", ", keys: Tkey, values: Tval ->", "Tkey: type, Tval: type", reads=False
)
initialize_from_text_file_ops = _on_table(
    "InitializeTableFromTextFile", ", filename: string ->",
    "key_index: int >= -2, value_index: int >= -2, vocab_size: int >= -1 = -1, "
    "delimiter: string = '\t'",
    reads=False,
)  # fmt: skip


def _check_handle(sig: ShapeSig) -> None:
    if sig.op.endswith("V2"):
        shapes.with_rank(sig.shapes[0], 0)
        return
    (count,) = shapes.with_rank(sig.shapes[0], 1)
    shapes.merge_dim(count, 2)


def _find_shape(sig: ShapeSig) -> Shape:
    _check_handle(sig)
    shapes.with_rank_at_most(sig.shapes[2], 1)
    # What the keys of the table look like is known to whoever holds it, who sets the shape.
    return None


def _size_shape(sig: ShapeSig) -> Shape:
    _check_handle(sig)
    return ()


def _export_shape(sig: ShapeSig) -> list[Shape]:
    _check_handle(sig)
    return [None, None]


def _write_shape(sig: ShapeSig) -> list[Shape]:
    _check_handle(sig)
    if sig.op.startswith("LookupTableRemove"):
        shapes.with_rank_at_least(sig.shapes[1], 1)
    elif sig.op.startswith("InitializeTableFromTextFile"):
        shapes.with_rank(sig.shapes[1], 0)
    elif sig.op.startswith(("InitializeTable", "LookupTableImportV2")):
        shapes.merge(shapes.with_rank(sig.shapes[1], 1), sig.shapes[2])
    return no_outputs(sig)


for _op in find_ops:
    _op.shape(_find_shape)
for _op in size_ops:
    _op.shape(_size_shape)
for _op in export_ops:
    _op.shape(_export_shape)
for _op in (
    *insert_ops, *remove_ops, *import_ops, *initialize_ops, *initialize_from_text_file_ops,
):  # fmt: skip
    _op.shape(_write_shape)
