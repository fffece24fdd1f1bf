"""Several steps in one operation: a loop whose body is a step of all replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.distribute.context import get_replica_context, get_strategy
from opdock.distribute.modes import in_cross_replica_context
from opdock.distribute.values import regroup
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.composed.loops import while_loop
from opdock.ops.control import group
from opdock.util import nest

__all__ = ["MultiStepContext", "run_steps"]


class MultiStepContext:
    """What the steps of one operation give: the outputs of the last of them.

    Attributes:
        run_op: the operation.
    """

    run_op: Any = None

    def __init__(self) -> None:
        self._outputs: dict[str, Any] = {}
        self._reductions: dict[str, Any] = {}
        self._others: dict[str, Any] = {}

    @property
    def last_step_outputs(self) -> dict[str, Any]:
        """The tensors of the last step, by name."""
        return self._outputs

    @property
    def non_tensor_outputs(self) -> dict[str, Any]:
        """What else a step gave while it was built, by name."""
        return self._others

    def set_last_step_output(self, name: str, output: Any, reduce_op: Any = None) -> None:
        """Has a tensor among the outputs.

        Args:
            name: its name there.
            output: the tensor, or values of replicas.
            reduce_op: how values of replicas become one; None, across replicas, keeps all.

        Raises:
            AssertionError: a replica does not say how.
        """

        def reduce(strategy: Any, value: Any) -> None:
            self._reductions[name] = reduce_op
            self._outputs[name] = value
            if reduce_op is not None:
                self._outputs[name] = strategy.reduce(reduce_op, value, axis=None)

        if in_cross_replica_context():
            reduce(get_strategy(), output)
        elif reduce_op is None:
            raise AssertionError("a replica has to say how its output is reduced")
        else:
            get_replica_context().merge_call(reduce, args=(output,))

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Has something else among what the steps give, from each replica."""

        def keep(strategy: Any, value: Any) -> None:
            self._others[name] = strategy.experimental_local_results(value)

        if in_cross_replica_context():
            self._others[name] = output
        else:
            get_replica_context().merge_call(keep, args=(output,))


def run_steps(
    extended: Any, fn: Callable[..., Any], iterator: Any, iterations: Any, initial: Any
) -> MultiStepContext:
    """The steps of `StrategyExtended.experimental_run_steps_on_iterator`.

    Args:
        extended: whose steps they are.
        fn: one step, a function of the context and of what the iterator gives.
        iterator: what the replicas read.
        iterations: how many steps.
        initial: what the outputs are before the first step; a structure of tensors.
    """
    context = MultiStepContext()

    def body(number: Any, *_: Any) -> list[Any]:
        done = fn(context, iterator.get_next())
        for name, output in context.last_step_outputs.items():
            context.last_step_outputs[name] = extended._local_results(output)
        outputs = nest.flatten(context.last_step_outputs)
        with control_dependencies([] if done is None else [done]):
            return [number + 1, *outputs]

    found = while_loop(
        lambda number, *_: number < iterations, body, [constant(0), *nest.flatten(initial or {})],
        parallel_iterations=1, back_prop=False, return_same_structure=True,
    )  # fmt: skip
    context.run_op = group(*found)
    outputs = nest.pack_sequence_as(context.last_step_outputs, list(found[1:]))
    for name, reduce_op in context._reductions.items():
        one = reduce_op is not None
        outputs[name] = outputs[name][0] if one else regroup(extended.worker_devices, outputs[name])
    context._outputs = outputs
    return context
