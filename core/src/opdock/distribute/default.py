"""The strategy where a program has chosen none: one replica, and variables as they always are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from opdock.data.dataset_v1 import DatasetV1
from opdock.distribute.extended import OneReplica
from opdock.distribute.modes import UpdateContext, has_strategy, require_scope
from opdock.distribute.numpy_dataset import variables_of
from opdock.distribute.replica import ReplicaContext
from opdock.distribute.strategy import InputContext, Strategy
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.scopes import colocate_with
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.util import nest

__all__ = ["DEFAULT", "DEFAULT_REPLICA"]


class _DefaultInputIterator:
    """An iterator over a data set, in the words of strategies."""

    def __init__(self, dataset: Any) -> None:
        self._iterator = dataset.make_initializable_iterator()

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()

    def initialize(self) -> list[Any]:
        """The operations that begin anew."""
        return [self.initializer]

    @property
    def initializer(self) -> Any:
        """The operation that begins anew, as libraries ask for it."""
        return self._iterator.initializer


class _DefaultScope:
    """The scope of the default strategy, which may be entered again."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self._entered: list[contextlib.AbstractContextManager[None]] = []

    def __enter__(self) -> Any:
        if has_strategy():
            raise RuntimeError("Must not nest tf.distribute.Strategy scopes.")
        self._entered.append(variable_creator_scope(self._create))
        self._entered[-1].__enter__()
        return self._strategy

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(None, None, None)

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        require_scope(self._strategy.extended)
        return next_creator(**kwargs)


class DefaultExtended(OneReplica):
    """One replica, anywhere."""

    def _use_merge_call(self) -> bool:
        return False

    def _scope(self, strategy: Any) -> contextlib.AbstractContextManager[Any]:
        return _DefaultScope(strategy)

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """Inside, operations are on the device of a variable."""
        require_scope(self)
        with colocate_with(colocate_with_variable):
            yield

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made outside of all strategies."""
        return v._distribute_strategy is None

    def _experimental_distribute_dataset(self, dataset: Any) -> Any:
        return dataset

    def _experimental_distribute_datasets_from_function(self, dataset_fn: Any) -> Any:
        return dataset_fn(InputContext())

    def _make_dataset_iterator(self, dataset: Any) -> _DefaultInputIterator:
        return _DefaultInputIterator(dataset)

    def _make_input_fn_iterator(
        self, input_fn: Any, replication_mode: Any
    ) -> _DefaultInputIterator:
        return _DefaultInputIterator(input_fn(InputContext()))

    def _experimental_make_numpy_dataset(self, numpy_input: Any, session: Any) -> Any:
        return DatasetV1.from_tensor_slices(variables_of(numpy_input, session))

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        if destinations is not None:
            raise NotImplementedError("the default strategy knows of no devices to broadcast to")
        return tensor

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        with ReplicaContext(self._container_strategy(), constant(0)):
            return fn(*args, **kwargs)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        return value

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def _update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        with UpdateContext(colocate_with):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    @property
    def worker_devices(self) -> NoReturn:
        """There are none that the strategy would know of."""
        raise RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy.")

    @property
    def parameter_devices(self) -> NoReturn:
        """There are none that the strategy would know of."""
        raise RuntimeError(
            "parameter_devices() method unsupported by default tf.distribute.Strategy."
        )

    def non_slot_devices(self, var_list: Any) -> Any:
        """The first of some variables, by name."""
        return min(var_list, key=lambda v: v.name)


class _DefaultStrategy(Strategy):
    """The one strategy of all programs that choose none."""

    _is_default = True

    def __init__(self) -> None:
        super().__init__(DefaultExtended(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        raise RuntimeError("Should only create a single instance of _DefaultDistributionStrategy")


DEFAULT: Final = _DefaultStrategy()
DEFAULT_REPLICA: Final = ReplicaContext(DEFAULT, 0)
