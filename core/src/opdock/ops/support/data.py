"""What the ops of all dataset families share: a dataset is a variant, and made by no effect."""

from __future__ import annotations

import re
from typing import Final

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_again, define_op
from opdock.shapes import Shape

__all__ = ["ELEMENTS", "dataset_op", "element_shapes", "under_earlier_names", "working_op"]

ELEMENTS: Final = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"

_CAPTURED: Final = re.compile(r"(\w*(?:arguments|args)): T")
_FUNCTION: Final = re.compile(r"(\w+): func")


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
    # A dataset holds what it is made from, and two that look the same may draw other numbers.
    captures = _captures(inputs, attrs)
    op.declare(Traits(effect=False, merge=False, fold=False, foreign=True, captures=captures))
    op.not_differentiable()
    op.shape(_dataset_shape)
    return op


def working_op(name: str, signature: str, attrs: str = "", *, stateful: bool = True) -> OpSpec:
    """Defines an op that walks through a dataset, and runs what the user put there."""
    op = define_op(name, signature, attrs, stateful=stateful)
    captures = _captures(signature, attrs)
    op.declare(Traits(blocks=True, foreign=True, captures=captures)).not_differentiable()
    return op


def under_earlier_names(*ops: OpSpec) -> None:
    """Defines ops as graphs from before TensorFlow 1.15 call them: ExperimentalUniqueDataset.

    Their kernels are said to be `earlier` (`opdock.kernels.data.binding.hosted`).
    """
    for op in ops:
        define_again(op, f"Experimental{op.name}")


def _captures(signature: str, attrs: str) -> tuple[tuple[str, str], ...]:
    """The arguments that functions take, each with its function: `f_other_arguments` is that of
    `f`, and `other_arguments` that of the only one there is.
    """
    functions = _FUNCTION.findall(attrs)
    found = []
    for name in _CAPTURED.findall(signature):
        owner = name.partition("_other_")[0]
        found.append((name, owner if owner in functions else functions[0]))
    return tuple(found)


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
