"""`tf.distribute.Strategy`: what programs see of how a model is spread over devices."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import weakref
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from opdock import dtypes
from opdock.distribute.modes import require_across
from opdock.distribute.reductions import ReduceOp
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.composed.division import truediv
from opdock.ops.reduce import reduce_sum
from opdock.ops.rewriting.calls import tf_convert
from opdock.ops.rewriting.status import control_status_ctx

__all__ = ["InputContext", "InputReplicationMode", "Strategy"]


class InputReplicationMode(Enum):
    """How often a program's input function is called: once a worker."""

    PER_WORKER = "PER_WORKER"


class InputContext:
    """What an input function is told of who reads what it makes.

    Args:
        num_input_pipelines: how many pipelines there are.
        input_pipeline_id: which one this is.
        num_replicas_in_sync: how many replicas share a global batch.
    """

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:  # fmt: skip
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas share a global batch."""
        return self._num_replicas_in_sync

    @property
    def input_pipeline_id(self) -> int:
        """Which pipeline this is."""
        return self._input_pipeline_id

    @property
    def num_input_pipelines(self) -> int:
        """How many pipelines there are."""
        return self._num_input_pipelines

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """How many elements of a global batch each replica gets.

        Raises:
            ValueError: they cannot be shared out evenly.
        """
        size, rest = divmod(global_batch_size, self._num_replicas_in_sync)
        if rest:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by "
                f"`num_replicas_in_sync` {self._num_replicas_in_sync!r} "
            )
        return size


class Strategy:
    """How a computation is spread over devices and tasks.

    Args:
        extended: a `StrategyExtended`, which does it.
    """

    _is_default = False
    _should_use_with_coordinator = False  # what newer libraries ask: a program drives its own steps

    def __init__(self, extended: Any) -> None:
        self._extended = extended
        self._scale_loss_for_estimator = False

    @property
    def extended(self) -> Any:
        """What libraries call that know of strategies."""
        return self._extended

    @contextlib.contextmanager
    def _scale_loss_for_estimator_enabled(self) -> Iterator[None]:
        self._scale_loss_for_estimator = True
        try:
            yield
        finally:
            self._scale_loss_for_estimator = False

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Inside, this strategy is the current one, and makes the variables."""
        found: contextlib.AbstractContextManager[Any] = self._extended._scope(self)
        return found

    def colocate_vars_with(
        self, colocate_with_variable: Any
    ) -> contextlib.AbstractContextManager[Any]:
        """Inside, variables are made on the devices of another one."""
        found: contextlib.AbstractContextManager[Any]
        found = self._extended.colocate_vars_with(colocate_with_variable)
        return found

    # ------------------------------------------------------------ input
    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator that shares each batch of a data set out among the replicas."""
        return self._extended._make_dataset_iterator(dataset)

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> Any:  # fmt: skip
        """An iterator over what a function makes for each worker, an element for each replica.

        Raises:
            ValueError: the function is to be called otherwise than once a worker.
        """
        if replication_mode != InputReplicationMode.PER_WORKER:
            raise ValueError(f"Input replication mode not supported: {replication_mode!r}")
        with self.scope():
            return self._extended._make_input_fn_iterator(
                input_fn, replication_mode=replication_mode
            )

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A data set of the rows of arrays, which variables of the host keep."""
        return self._extended.experimental_make_numpy_dataset(numpy_input, session=session)

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """A data set, each batch of which is shared out among the replicas."""
        return self._extended._experimental_distribute_dataset(dataset)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        """What a function makes for each worker, an element for each replica."""
        return self._extended._experimental_distribute_datasets_from_function(dataset_fn)

    # ------------------------------------------------------------ computation
    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Runs a function on each replica, with the next element of an iterator if there is one."""
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
        return self.experimental_run_v2(fn, args=args)

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Runs a function on each replica; values of each replica are what it is given and gives.

        Args:
            fn: what to run.
            args, kwargs: its arguments; of those that have a value for each replica it gets its
                own.
        """
        # In a `tf.function` its control flow may depend on tensors as the function's may.
        fn = tf_convert(fn, control_status_ctx(), convert_by_default=False)
        with self.scope():
            return self._extended.call_for_each_replica(fn, args=args, kwargs=kwargs)

    def run(
        self, fn: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: Any = None,
        options: Any = None,
    ) -> Any:  # fmt: skip
        """`experimental_run_v2` under the name that TensorFlow 2 has for it; no option counts."""
        return self.experimental_run_v2(fn, args=args, kwargs=kwargs)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """A value of all replicas, reduced over them and, if asked for, along an axis.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`, or its name.
            value: what each replica has.
            axis: the axis; the mean heeds how many elements each replica has along it.

        Raises:
            TypeError: the reduction or the axis is none.
            ValueError: the axis is out of range.
            RuntimeError: the program is not across this strategy's replicas.
        """
        require_across(self._extended)
        op = ReduceOp.of(reduce_op)
        if axis is None:
            return self._extended._reduce(op, value)
        if op is ReduceOp.SUM:
            summed = self.experimental_run_v2(lambda v: reduce_sum(v, axis=axis), args=(value,))
            return self._extended._reduce(op, summed)
        if op is not ReduceOp.MEAN:
            raise TypeError(f"Expected `reduce_op` to be a `tf.distribute.ReduceOp`, not: {op!r}")
        if not isinstance(axis, int):
            raise TypeError(f"Expected `axis` to be an integer not: {axis!r}")
        parts = self.experimental_run_v2(lambda v: _sum_and_count(v, axis), args=(value,))
        total, count = (self._extended._reduce(ReduceOp.SUM, part) for part in parts)
        return truediv(total, cast(count, total.dtype))

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The value of each local replica."""
        found: tuple[Any, ...] = self._extended._local_results(value)
        return found

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The value of each local replica."""
        return self.unwrap(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """An operation that runs what each replica has."""
        return self._extended._group(value, name)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas update together."""
        found: int = self._extended._num_replicas_in_sync
        return found

    # ------------------------------------------------------------ clusters
    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:  # fmt: skip
        """Tells the strategy of the cluster and of the task that it is in."""
        self._extended._configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto: Any) -> Any:
        """A copy of a ConfigProto with what the strategy needs."""
        return self._extended._update_config_proto(config_proto)

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        found = type(self).__new__(type(self))
        memo[id(self)] = found
        for name, value in self.__dict__.items():
            setattr(found, name, copy.deepcopy(value, memo))
        found._extended._container_strategy_weakref = weakref.ref(found)
        return found

    def __copy__(self) -> Strategy:
        raise RuntimeError("Must only deepcopy DistributionStrategy.")

    def _in_multi_worker_mode(self) -> bool:
        """Whether TF_CONFIG tells of a cluster."""
        config = json.loads(os.environ.get("TF_CONFIG", "{}"))
        return bool(config) and "master" not in config.get("cluster", {})


def _sum_and_count(value: Any, axis: int) -> tuple[Any, Any]:
    """The sum along an axis, and how many elements it has."""
    total = reduce_sum(value, axis=axis)
    count = None if value.shape.ndims is None else value.shape.as_list()[axis]
    if count is not None:
        return total, convert_to_tensor(count, dtypes.int64)
    return total, shape(value, out_type=dtypes.int64)[axis]
