"""`tf.contrib.distribute`'s steps of a training algorithm, and what runs them until data ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from opdock.errors import OutOfRangeError
from opdock.graph.variables.variable_lists import global_variables_initializer

__all__ = ["Monitor", "StandardInputStep", "StandardSingleLossStep", "Step"]


class Step(ABC):
    """One step of a training algorithm, which a call makes the operation of.

    Args:
        distribution: the strategy by which it is done.
    """

    def __init__(self, distribution: Any) -> None:
        self._distribution = distribution

    @property
    def distribution(self) -> Any:
        """The strategy."""
        return self._distribution

    def initialize(self) -> Any:
        """The operations to run before the first step."""
        return []

    @abstractmethod
    def __call__(self) -> Any:
        """The operation that does one step."""


class StandardInputStep(Step):
    """A step whose input is a data set.

    Args:
        dataset_fn: a function without arguments that makes the `tf.data.Dataset`, for each worker.
        distribution: the strategy.
    """

    def __init__(self, dataset_fn: Callable[[], Any], distribution: Any) -> None:
        super().__init__(distribution)
        self._iterator = distribution.make_input_fn_iterator(lambda _: dataset_fn())

    def initialize(self) -> Any:
        """Begins the data set anew."""
        return self._iterator.initialize()


class StandardSingleLossStep(StandardInputStep):
    """A step that lowers one loss.

    Args:
        dataset_fn: a function without arguments that makes the `tf.data.Dataset`.
        loss_fn: the loss, a function of the steps' context and of an element.
        optimizer: a `tf.train.Optimizer`.
        distribution: the strategy.
        iterations_per_step: how often an operation does it.
    """

    def __init__(
        self, dataset_fn: Callable[[], Any], loss_fn: Callable[..., Any], optimizer: Any,
        distribution: Any, iterations_per_step: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(dataset_fn, distribution)
        self._loss_fn, self._optimizer = loss_fn, optimizer
        self._iterations_per_step = iterations_per_step

    def __call__(self) -> Any:
        """The operation that does the iterations of one step."""
        with self._distribution.scope():
            return self._distribution.extended.experimental_run_steps_on_iterator(
                self._iteration, self._iterator, self._iterations_per_step
            ).run_op

    def _iteration(self, context: Any, inputs: Any) -> Any:
        def minimize(context: Any, inputs: Any) -> Any:
            return self._optimizer.minimize(lambda: self._loss_fn(context, inputs))

        found = self._distribution.extended.call_for_each_replica(minimize, args=(context, inputs))
        return self._distribution.group(found)


class Monitor:
    """Runs the steps of a training algorithm; its variables are initialized at once.

    Args:
        step_callable: a `Step`.
        session: the session in which they run.

    Raises:
        ValueError: there is no session.
    """

    def __init__(self, step_callable: Step, session: Any = None) -> None:
        if session is None:
            raise ValueError("Should provide a `session` in Graph mode.")
        session.run(step_callable.initialize())
        self._run_step = session.make_callable(step_callable())
        session.run(global_variables_initializer())

    def run_steps(self, num_steps: int | None = None) -> None:
        """Does steps, so many or until the data ends."""
        done = 0
        while num_steps is None or done < num_steps:
            try:
                self._run_step()
            except OutOfRangeError:
                return
            done += 1
