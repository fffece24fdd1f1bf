"""Elements of several datasets in the order that another dataset says."""

from __future__ import annotations

from collections.abc import Sequence

from opdock.data.steps import DatasetLike, Made
from opdock.data.util import nest, structure
from opdock.ops.data_elements import directed_interleave_dataset_op

__all__ = ["directed"]


def directed(selector: DatasetLike, datasets: Sequence[DatasetLike]) -> Made:
    """The dataset whose numbers say which of `datasets` gives the next element.

    Raises:
        TypeError: their elements are of several kinds.
    """
    specs = [d.element_spec for d in datasets]
    types, classes = structure.legacy_types(specs[0]), structure.legacy_classes(specs[0])
    for spec in specs[1:]:
        if structure.legacy_types(spec) != types or structure.legacy_classes(spec) != classes:
            raise TypeError("All datasets must have the same type and class.")
    shapes = structure.legacy_shapes(specs[0])
    for spec in specs[1:]:
        pairs = zip(nest.flatten(shapes), nest.flatten(structure.legacy_shapes(spec)), strict=True)
        wider = [a.most_specific_compatible_shape(b) for a, b in pairs]
        shapes = nest.pack_sequence_as(shapes, wider)
    made = structure.convert_legacy_structure(types, shapes, classes)
    variant = directed_interleave_dataset_op(
        selector._variant_tensor, [d._variant_tensor for d in datasets],
        **structure.flat_structure(made),
    )  # fmt: skip
    return Made(variant, made)
