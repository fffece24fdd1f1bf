"""What `TPUEstimator` makes its second meta graph of where it exports a model.

By default it exports two, whether `use_tpu` was true or not: one for any device, and one that is
tagged `tpu` as well, in which the model is a function that a core of a TPU is asked for. There is
no such core here, so the function's operations are those of any device, and whoever loads that meta
graph computes the same with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.composed.functional_control import partitioned_call
from opdock.ops.control import no_op
from opdock.ops.identity import identity


def rewrite(
    computation: Callable[..., Any], inputs: Sequence[Any] | None = None, infeed_queue: Any = None,
    device_assignment: Any = None, name: str | None = None,
) -> list[Tensor] | Operation:  # fmt: skip
    """What a computation for a TPU gives, built for any device.

    Args:
        computation: builds operations, and returns tensors and then, if any, operations.
        inputs: what it is called with.
        infeed_queue: must be None, as it feeds a TPU.
        device_assignment: which core of a TPU; ignored.
        name: ignored.

    Returns:
        The tensors that the computation returns, each after its operations; where it returns no
        tensor, an operation after them.

    Raises:
        ValueError: there is a queue, or a tensor comes after an operation.
    """
    if infeed_queue is not None:
        raise ValueError("infeed_queue feeds a TPU, and there is none")
    made = computation(*(inputs or ()))
    made = [] if made is None else [*made] if isinstance(made, (list, tuple)) else [made]
    operations = [one for one in made if isinstance(one, Operation)]
    values = [one for one in made if not isinstance(one, Operation)]
    if made != values + operations:
        raise ValueError(
            "TPU functions must return zero-or more Tensor values followed by zero or more "
            f"Operations, not {made}"
        )
    tensors = [convert_to_tensor(value) for value in values]
    with control_dependencies(operations):
        return [identity(tensor) for tensor in tensors] or no_op()


def prune_unconnected_ops_from_xla(prune_graph: Any) -> None:
    """Does nothing: what no result needs is not run."""


def tpu_ordinal_selector() -> Tensor:
    """Which core of a TPU is asked next: always the first."""
    return convert_to_tensor(0)


def TPUPartitionedCall(  # noqa: N802: the operation's name
    args: Sequence[Any], device_ordinal: Any, Tout: Sequence[Any], f: Any, name: str | None = None
) -> Any:
    """The results of a function, computed where its operations were put and on no TPU.

    Args:
        args: the arguments, with what the function uses from outside.
        device_ordinal: which core of a TPU; ignored.
        Tout: the types of the results.
        f: a function of the library.
        name: ignored.
    """
    return partitioned_call(args, f, Tout)
