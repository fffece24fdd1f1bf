"""What the ops of all dataset families share: a dataset is a variant, and made by no effect."""

from __future__ import annotations

from typing import Final

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__ = ["ELEMENTS", "dataset_op", "element_shapes", "working_op"]

ELEMENTS: Final = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"

# A dataset holds what it is made from, and two that look the same may draw other numbers.
_DATASET: Final = Traits(effect=False, merge=False, fold=False)
_WORK: Final = Traits(blocks=True, foreign=True)


def dataset_op(
    name: str, inputs: str, attrs: str = ELEMENTS, *, source: bool = False, output: str = "handle"
) -> OpSpec:
    """Defines an op that makes a dataset.

    Args:
        name: the op type.
        inputs: its arguments.
        attrs: its attributes.
        source: whether TF flags it as stateful, as it does those that begin a pipeline.
        output: the name of the result.
    """
    op = define_op(name, f"{inputs} -> {output}: variant", attrs, stateful=source)
    op.declare(_DATASET).not_differentiable()
    op.shape(_dataset_shape)
    return op


def working_op(name: str, signature: str, attrs: str = "", *, stateful: bool = True) -> OpSpec:
    """Defines an op that walks through a dataset, and runs what the user put there."""
    op = define_op(name, signature, attrs, stateful=stateful)
    op.declare(_WORK).not_differentiable()
    return op


def _dataset_shape(sig: ShapeSig) -> list[Shape]:
    return [()] * sig.n_outputs


def element_shapes(sig: ShapeSig) -> list[Shape]:
    """The outputs are the components of an element."""
    declared = [shapes.as_shape(s) for s in sig.attrs["output_shapes"]]
    if len(declared) != sig.n_outputs:
        raise ValueError(
            f"`output_shapes` must be the same length as `output_types` ({len(declared)} vs. "
            f"{sig.n_outputs})"
        )
    return declared
