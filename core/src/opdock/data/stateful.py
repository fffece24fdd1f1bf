"""Functions from a state to the next one: what reductions and scans share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.steps import DatasetLike, Made
from opdock.data.util import nest, structure
from opdock.ops.data_functions import reduce_dataset_op, scan_dataset_op

__all__ = ["reduce", "scan", "state_function"]


def state_function(
    func: Callable[..., Any], name: str, state_spec: Any, inputs: Callable[[Any], Any],
    next_state: Callable[[Any], Any] = lambda output: output,
) -> tuple[StructuredFunctionWrapper, Any]:  # fmt: skip
    """A function that keeps the kind of its state, whose shapes may have to be less known for that.

    Args:
        func: the function.
        name: what errors call the transformation.
        state_spec: the structure of specs of the first state.
        inputs: from that of a state to that of the function's arguments.
        next_state: from the function's output structure to that of the next state.

    Returns:
        The function, and the structure of specs of all states.

    Raises:
        TypeError: the function gives another kind of state.
    """
    while True:
        function = StructuredFunctionWrapper(func, name, input_structure=inputs(state_spec))
        following = next_state(function.output_structure)
        _check(structure.legacy_classes(state_spec), structure.legacy_classes(following), "classes")
        _check(structure.legacy_types(state_spec), structure.legacy_types(following), "types")
        shapes = structure.legacy_shapes(state_spec)
        wider = [
            a.most_specific_compatible_shape(b) if hasattr(a, "raw") else a
            for a, b in zip(
                nest.flatten(shapes), nest.flatten(structure.legacy_shapes(following)), strict=True
            )
        ]
        same = all(
            not hasattr(a, "raw") or a.raw == b.raw
            for a, b in zip(nest.flatten(shapes), wider, strict=True)
        )
        if same:
            return function, state_spec
        state_spec = structure.convert_legacy_structure(
            structure.legacy_types(state_spec), nest.pack_sequence_as(shapes, wider),
            structure.legacy_classes(state_spec),
        )  # fmt: skip


def _check(expected: Any, given: Any, what: str) -> None:
    pairs = list(zip(nest.flatten(expected), nest.flatten(given), strict=False))
    same = len(nest.flatten(expected)) == len(nest.flatten(given))
    if not same or any(not _fits(a, b) for a, b in pairs):
        raise TypeError(
            f"The element {what} for the new state must match the initial state. Expected "
            f"{expected}; got {given}."
        )


def _fits(expected: Any, given: Any) -> bool:
    if isinstance(expected, type) and isinstance(given, type):
        return issubclass(given, expected)
    return bool(expected == given)


def reduce(dataset: DatasetLike, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
    """See `tf.data.Dataset.reduce`."""
    state = structure.normalize_element(initial_state)
    spec = structure.type_spec_from_value(state)
    function, spec = state_function(
        reduce_func, "reduce()", spec, lambda s: (s, dataset.element_spec)
    )
    flat = reduce_dataset_op(
        dataset._variant_tensor, structure.to_tensor_list(spec, state), function.captured,
        f=function.function, **structure.flat_structure(spec),
    )  # fmt: skip
    return structure.from_compatible_tensor_list(spec, flat)


def scan(
    dataset: DatasetLike, initial_state: Any, scan_func: Callable[..., Any], keeps_count: bool
) -> Made:
    """See `tf.data.experimental.scan`."""
    state = structure.normalize_element(initial_state)

    def next_state(output: Any) -> Any:
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError(
                "The scan function must return a pair comprising the new state and the output "
                "value."
            )
        return output[0]

    function, spec = state_function(
        scan_func, "tf.data.experimental.scan()", structure.type_spec_from_value(state),
        lambda s: (s, dataset.element_spec), next_state,
    )  # fmt: skip
    made = function.output_structure[1]
    variant = scan_dataset_op(
        dataset._variant_tensor, structure.to_tensor_list(spec, state), function.captured,
        f=function.function, preserve_cardinality=keeps_count, **structure.flat_structure(made),
    )  # fmt: skip
    return Made(variant, made, [function])
