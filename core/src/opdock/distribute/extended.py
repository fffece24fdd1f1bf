"""`tf.distribute.StrategyExtended`: what a strategy does, for libraries that know of strategies."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from opdock.distribute import device_util
from opdock.distribute.modes import require_across, require_scope
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.scope import StrategyScope
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.ops.control import group
from opdock.ops.identity import identity
from opdock.util import nest

__all__ = ["BetweenGraphs", "InOneGraph", "OneReplica", "StrategyExtended"]


class StrategyExtended:
    """Base class. A subclass says where variables are, and how replicas are run and reduced.

    Args:
        container_strategy: the strategy whose part this is.
    """

    _default_device: str | None = None
    _require_static_shapes = False

    def __init__(self, container_strategy: Any) -> None:
        self._container_strategy_weakref = weakref.ref(container_strategy)

    def _container_strategy(self) -> Any:
        return self._container_strategy_weakref()

    # ------------------------------------------------------------ variables
    def _scope(self, strategy: Any) -> contextlib.AbstractContextManager[Any]:
        return StrategyScope(strategy)

    def _allow_variable_partition(self) -> bool:
        return False

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in this strategy's scope."""
        found: bool = v._distribute_strategy is self._container_strategy()
        return found

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """Inside, variables are made on the devices of another one.

        Raises:
            ValueError: the variable is not of this strategy.
            RuntimeError: the program is not in the strategy's scope.
        """
        require_scope(self)
        self._validate_colocate_with_variable(colocate_with_variable)

        def beside(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            require_scope(self)
            kwargs.update(use_resource=True, colocate_with=colocate_with_variable)
            return next_creator(**kwargs)

        with variable_creator_scope(beside):
            yield

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        """Refuses a variable beside which none can be made."""

    def read_var(self, v: Any) -> Any:
        """The value of a variable across replicas."""
        raise NotImplementedError("must be implemented in descendants")

    # ------------------------------------------------------------ input
    def _make_dataset_iterator(self, dataset: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def _make_input_fn_iterator(self, input_fn: Any, replication_mode: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def _experimental_distribute_dataset(self, dataset: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def _experimental_distribute_datasets_from_function(self, dataset_fn: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A data set of the rows of arrays, which variables of the host keep.

        Raises:
            RuntimeError: the program is in a replica, or in another strategy's scope.
        """
        require_across(self)
        return self._experimental_make_numpy_dataset(numpy_input, session)

    def _experimental_make_numpy_dataset(self, numpy_input: Any, session: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    # ------------------------------------------------------------ values
    def _reduce(self, reduce_op: Any, value: Any) -> Any:
        where = device_util.current() or "/device:CPU:0"
        return self._local_results(self._reduce_to(reduce_op, value, where))[0]

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """What each replica has as one value, on the devices of `destinations`.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: what each replica has.
            destinations: a device's name, a tensor, a variable, or values of each replica.
            options: hints of newer libraries for the sum's way over a network.

        Raises:
            RuntimeError: the program is in a replica, or in another strategy's scope.
        """
        require_across(self)
        return self._reduce_to(ReduceOp.of(reduce_op), value, destinations)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Any, options: Any = None
    ) -> list[Any]:
        """`reduce_to` for many values at once."""
        require_across(self)
        return self._batch_reduce_to(ReduceOp.of(reduce_op), value_destination_pairs)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any) -> list[Any]:
        return [self.reduce_to(reduce_op, v, destinations=to) for v, to in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A tensor on the devices of `destinations`."""
        require_across(self)
        return self._broadcast_to(tensor, destinations)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def _local_results(self, distributed_value: Any) -> tuple[Any, ...]:
        raise NotImplementedError("must be implemented in descendants")

    def value_container(self, value: Any) -> Any:
        """What has a replica's value beside those of the others, or the value itself."""
        raise NotImplementedError("must be implemented in descendants")

    def _group(self, value: Any, name: str | None = None) -> Any:
        parts = nest.flatten(self._local_results(value))
        if len(parts) != 1 or name is not None:
            return group(parts, name=name)
        return getattr(parts[0], "op", parts[0])

    # ------------------------------------------------------------ computation
    def call_for_each_replica(
        self, fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Runs a function on each replica; see `Strategy.experimental_run_v2`.

        Raises:
            RuntimeError: the program is in a replica, or in another strategy's scope.
        """
        require_across(self)
        with self._container_strategy().scope():
            return self._call_for_each_replica(fn, args, kwargs or {})

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def update(
        self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None,
        group: bool = True,
    ) -> Any:  # fmt: skip
        """Calls a function on each copy of a variable, on its device.

        Args:
            var: the variable.
            fn: is called with a copy, and with what of the arguments is on its device.
            args, kwargs: more arguments.
            group: whether the results are one; else each device's is given.

        Raises:
            RuntimeError: the program is in a replica, or in another strategy's scope.
        """
        require_across(self)
        with self._container_strategy().scope():
            return self._update(var, fn, args, kwargs or {}, group)

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None,
        group: bool = True,
    ) -> Any:  # fmt: skip
        """Calls a function on each of some devices, which `non_slot_devices` gives."""
        require_across(self)
        with self._container_strategy().scope():
            return self._update_non_slot(colocate_with, fn, args, kwargs or {}, group)

    def _update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    def experimental_run_steps_on_iterator(
        self, fn: Callable[..., Any], iterator: Any, iterations: Any = 1,
        initial_loop_values: Any = None,
    ) -> Any:  # fmt: skip
        """Takes several steps in one operation, each with the next element of an iterator.

        Args:
            fn: one step, a function of a `MultiStepContext` and of what the iterator gives.
            iterator: what `make_dataset_iterator` or `make_input_fn_iterator` gave.
            iterations: how many steps.
            initial_loop_values: what the last outputs are before the first step.

        Returns:
            A `MultiStepContext`, which has the operation and the outputs of the last step.
        """
        require_across(self)
        with self._container_strategy().scope():
            return self._experimental_run_steps_on_iterator(
                fn, iterator, iterations, initial_loop_values
            )

    def _experimental_run_steps_on_iterator(
        self, fn: Any, iterator: Any, iterations: Any, initial_loop_values: Any
    ) -> Any:
        raise NotImplementedError("must be implemented in descendants")

    # ------------------------------------------------------------ facts
    def _in_multi_worker_mode(self) -> bool:
        return False

    def _use_merge_call(self) -> bool:
        """Whether replicas meet in merge calls: the default strategy's one has nobody to meet."""
        return True

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether all shapes have to be known before a step."""
        return self._require_static_shapes

    @property
    def _num_replicas_in_sync(self) -> int:
        raise NotImplementedError("must be implemented in descendants")

    @property
    def _global_batch_size(self) -> bool:
        """Whether a dataset's batches are for all replicas together; Keras asks."""
        return True

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where replicas compute."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables are."""
        raise NotImplementedError("must be implemented in descendants")

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where an optimizer keeps what it has for all of some variables."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker has a graph of its own."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def experimental_should_init(self) -> bool:
        """Whether this task initializes the variables."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def should_checkpoint(self) -> bool:
        """Whether this task writes checkpoints."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def should_save_summary(self) -> bool:
        """Whether this task writes summaries."""
        raise NotImplementedError("must be implemented in descendants")

    @property
    def _saves_together(self) -> bool:
        """Whether what is saved may be reduced over all workers, so that all have to save."""
        return False

    def _configure(
        self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None
    ) -> None:
        """Takes note of the cluster."""

    def _update_config_proto(self, config_proto: Any) -> Any:
        return copy.deepcopy(config_proto)


class OneReplica(StrategyExtended):
    """A strategy of one replica: what all replicas have is what this one has."""

    def read_var(self, v: Any) -> Any:
        """The value of a variable."""
        return identity(v)

    def _local_results(self, distributed_value: Any) -> tuple[Any, ...]:
        return (distributed_value,)

    def value_container(self, value: Any) -> Any:
        """The value."""
        return value

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1


class InOneGraph(StrategyExtended):
    """A strategy whose program is one: it makes, saves and reports everything itself."""

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker has a graph of its own: no."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Whether this task initializes the variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this task writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this task writes summaries."""
        return True


class BetweenGraphs(StrategyExtended):
    """A strategy whose workers have a graph each; one of them, the chief, saves and reports."""

    _is_chief: bool

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker has a graph of its own: yes."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this task writes checkpoints."""
        return self._is_chief

    @property
    def should_save_summary(self) -> bool:
        """Whether this task writes summaries."""
        return self._is_chief
