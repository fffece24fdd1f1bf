"""What TensorFlow's vectorization of maps stands on: functions of rows, and races of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.spec import DatasetSpec
from opdock.data.steps import Made, int64
from opdock.data.util import structure
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops import data_elements as elements
from opdock.ops import data_functions
from opdock.shapes import TensorShape

__all__ = ["assert_next", "choose_fastest_branch", "map_defun", "model", "optimize"]

Apply = Callable[[Any], Any]


def map_defun(
    fn: Any, elems: list[Any], output_dtypes: list[Any], output_shapes: list[Any],
    max_intra_op_parallelism: int = 1,
) -> list[Tensor]:  # fmt: skip
    """A function of each row of some tensors, whose results are stacked.

    Args:
        fn: a `tf.function` with an input signature, of a row of each tensor.
        elems: the tensors.
        output_dtypes: of what the function returns.
        output_shapes: of what it returns for a row.
        max_intra_op_parallelism: accepted for TF's signature: ops share the session's threads.

    Raises:
        ValueError: an argument is no list, or the tensors have no rows, or not equally many.
    """
    for given, name, of in (
        (elems, "elems", "tensors"),
        (output_dtypes, "output_dtypes", "`tf.DType` objects"),
        (output_shapes, "output_shapes", "`tf.TensorShape` objects"),
    ):
        if not isinstance(given, list):
            raise ValueError(f"`{name}` must be a list of {of}.")
    concrete = fn.get_concrete_function()
    results = data_functions.map_defun_op(
        [convert_to_tensor(e) for e in elems], concrete.captured_inputs,
        output_types=[dtypes.as_dtype(t) for t in output_dtypes],
        output_shapes=[TensorShape(s) for s in output_shapes], f=concrete.graph,
        max_intra_op_parallelism=max_intra_op_parallelism,
    )  # fmt: skip
    return list(results) if isinstance(results, list | tuple) else [results]


def choose_fastest_branch(
    input_dataset: Any, functions: Sequence[Callable[[Any], Any]], ratio_numerator: int = 1,
    ratio_denominator: int = 1, num_elements_per_branch: int | None = None,
) -> Any:  # fmt: skip
    """What functions, which all make the same, make of a dataset, by whichever is the fastest.

    Args:
        input_dataset: what they take. Each walks through it once at most.
        functions: from datasets to datasets.
        ratio_numerator, ratio_denominator: the number of elements that are taken for so many
            results.
        num_elements_per_branch: how many results each gives before one is chosen; by default ten
            for each of `ratio_denominator`.

    Raises:
        ValueError: the ratio is not positive.
    """
    if ratio_numerator <= 0 or ratio_denominator <= 0:
        raise ValueError("ratio must be positive.")
    taken = DatasetSpec(input_dataset.element_spec)
    made = [
        StructuredFunctionWrapper(f, "ChooseFastestV2", input_structure=taken) for f in functions
    ]
    spec = made[0].output_structure._element_spec
    tried = num_elements_per_branch or 10 * ratio_denominator
    variant = data_functions.choose_fastest_branch_dataset_op(
        input_dataset._variant_tensor, int64(ratio_numerator, "ratio_numerator"),
        int64(ratio_denominator, "ratio_denominator"), [t for f in made for t in f.captured],
        num_elements_per_branch=tried, branches=[f.function for f in made],
        other_arguments_lengths=[len(f.captured) for f in made],
        **structure.flat_structure(spec),
    )  # fmt: skip
    return input_dataset._follow(Made(variant, spec, made))


def optimize(optimizations: Sequence[str] | None = None) -> Apply:
    """The same elements, of a dataset that is rewritten.

    Args:
        optimizations: names of TensorFlow's rewrites, those of `OptimizationOptions` among them.
    """
    names = convert_to_tensor(list(optimizations or ()), dtypes.string, name="optimizations")
    return lambda dataset: dataset._unchanged(elements.optimize_dataset_op, names)


def assert_next(transformations: Any) -> Apply:
    """The same elements, if those transformations follow.

    Args:
        transformations: what TensorFlow calls the next ones, such as "Map"; a vector of strings.

    Raises:
        ValueError: there are none. When it runs, InvalidArgumentError says what follows instead.
    """
    if transformations is None:
        raise ValueError("At least one transformation should be specified")
    names = convert_to_tensor(transformations, dtypes.string, name="transformations")
    return lambda dataset: dataset._unchanged(elements.assert_next_dataset_op, names)


def model() -> Apply:
    """The same elements; TensorFlow watches how long they take, to tune how many are made ahead."""
    return lambda dataset: dataset._unchanged(elements.model_dataset_op)
