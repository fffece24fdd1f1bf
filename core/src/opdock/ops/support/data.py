"""What the ops of all dataset families share: a dataset is a variant, and made by no effect."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Final

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import scalar
from opdock.shapes import Shape

__all__ = [
    "ELEMENTS", "arguments_shape", "dataset_op", "element_shapes", "handle_op", "working_op",
]  # fmt: skip

ELEMENTS: Final = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"

_CAPTURED: Final = re.compile(r"(\w*(?:arguments|args)): T")
_FUNCTION: Final = re.compile(r"(\w+): func")
_PLAIN: Final = {"bool", "float", "int32", "int64", "resource", "string", "variant"}
# The ranks of arguments that are no scalars.
_RANKS: Final[dict[str, tuple[Callable[..., object], int]]] = {
    "filenames": (shapes.with_rank_at_most, 1), "patterns": (shapes.with_rank_at_most, 1),
    "row_shape": (shapes.with_rank, 1), "select_cols": (shapes.with_rank, 1),
    "optimizations": (shapes.with_rank, 1), "indices": (shapes.with_rank, 2),
    "transformations": (shapes.with_rank, 1), "dense_shape": (shapes.with_rank, 1),
    "values": (shapes.with_rank, 1),
}  # fmt: skip


def dataset_op(
    name: str, inputs: str, attrs: str = ELEMENTS, *, source: bool = False, files: bool = False,
    output: str = "handle",
) -> OpSpec:  # fmt: skip
    """Defines an op that makes a dataset.

    Args:
        name: the op type.
        inputs: its arguments.
        attrs: its attributes.
        source: whether TF flags it as stateful, as it does those that begin a pipeline.
        files: whether workers may share out the files that its first argument names.
        output: the name of the result.
    """
    op = define_op(name, f"{inputs} -> {output}: variant", attrs, stateful=source)
    # A dataset holds what it is made from, and two that look the same may draw other numbers.
    captures = _captures(inputs, attrs)
    op.declare(
        Traits(
            effect=False, merge=False, fold=False, foreign=True, captures=captures, files=files
        )
    )  # fmt: skip
    op.not_differentiable()
    op.shape(arguments_shape(inputs))
    return op


def working_op(
    name: str, signature: str, attrs: str = "", *, stateful: bool = True, takes: bool = False
) -> OpSpec:
    """Defines an op that walks through a dataset, and runs what the user put there.

    Args:
        name: the op type.
        signature: its arguments and results.
        attrs: its attributes.
        stateful: whether TF flags it as such.
        takes: as `Traits` has it.
    """
    op = define_op(name, signature, attrs, stateful=stateful)
    captures = _captures(signature, attrs)
    op.declare(Traits(blocks=True, takes=takes, foreign=True, captures=captures))
    return op.not_differentiable()


def handle_op(name: str, attrs: str = "") -> OpSpec:
    """Defines an op whose result is the handle of a resource that datasets share."""
    shared = "container: string = '', shared_name: string = ''"
    op = define_op(
        name, "-> handle: resource", f"{attrs}, {shared}" if attrs else shared, stateful=True
    )
    op.declare(Traits(effect=False, merge=False, fold=False)).not_differentiable()
    op.shape(scalar)
    return op


def _captures(signature: str, attrs: str) -> tuple[tuple[str, str], ...]:
    """The arguments that functions take, each with its function: `f_other_arguments` is that of
    `f`, and `other_arguments` that of the only one there is.
    """
    functions = _FUNCTION.findall(attrs)
    found = []
    for name in _CAPTURED.findall(signature) if functions else ():
        owner = name.partition("_other_")[0]
        found.append((name, owner if owner in functions else functions[0]))
    return tuple(found)


def arguments_shape(inputs: str) -> Callable[[ShapeSig], list[Shape]]:
    """The shape function of an op with these inputs: a dataset is a scalar, and so are numbers,
    texts and flags among the arguments, up to the first list.
    """
    checks: list[Callable[[Shape], object]] = []
    for name, kind in (words.split(": ") for words in inputs.split(", ") if words):
        if kind not in _PLAIN:
            break
        check, rank = _RANKS.get(name, (shapes.with_rank, 0))
        checks.append(functools.partial(check, rank=rank))

    def shape(sig: ShapeSig) -> list[Shape]:
        for given, check in zip(sig.shapes, checks, strict=False):
            check(given)
        return [()] * sig.n_outputs

    return shape


def gives_elements(op: OpSpec) -> None:
    """Says that the results of an op are the components of an element, which is as it is."""
    op.declare(dataclasses.replace(op.traits, promised=True)).shape(element_shapes)


def element_shapes(sig: ShapeSig) -> list[Shape]:
    """The outputs are the components of an element."""
    declared = [shapes.as_shape(s) for s in sig.attrs["output_shapes"]]
    if len(declared) != sig.n_outputs:
        raise ValueError(
            f"`output_shapes` must be the same length as `output_types` ({len(declared)} vs. "
            f"{sig.n_outputs})"
        )
    return declared
