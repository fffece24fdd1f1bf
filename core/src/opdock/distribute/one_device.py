"""`OneDeviceStrategy`: one replica, on a device that the program names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.distribute import device_util
from opdock.distribute.extended import InOneGraph, OneReplica
from opdock.distribute.inputs import InputExtended, Worker
from opdock.distribute.modes import UpdateContext
from opdock.distribute.replica import ReplicaContext
from opdock.distribute.steps import MultiStepContext, run_steps
from opdock.distribute.strategy import Strategy
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.scopes import colocate_with, device
from opdock.util import nest

__all__ = ["OneDeviceStrategy", "validate_colocate"]


class OneDeviceStrategy(Strategy):
    """Everything on one device, as programs try out that are meant for another strategy.

    Args:
        device: its name.
    """

    def __init__(self, device: str) -> None:
        super().__init__(OneDeviceExtended(self, device))


def validate_colocate(variable: Any, extended: Any) -> None:
    """Refuses a variable that is not of a strategy.

    Raises:
        ValueError: it is not.
    """
    strategy = getattr(variable, "_distribute_strategy", None)
    if strategy is None or strategy.extended is not extended:
        raise ValueError(
            "`colocate_vars_with` must only be passed a variable created in this "
            f"tf.distribute.Strategy.scope(), not: {variable!r}"
        )


class OneDeviceExtended(InputExtended, OneReplica, InOneGraph):
    """What `OneDeviceStrategy` does."""

    def __init__(self, container_strategy: Any, device: str) -> None:
        super().__init__(container_strategy)
        self._device = device_util.canonicalize(device)
        host = device_util.get_host_for_device(self._device)
        self._workers = (Worker(host, (self._device,)),)

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        beside = kwargs.pop("colocate_with", None)
        with device(self._device) if beside is None else colocate_with(beside.op):
            return next_creator(**kwargs)

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        validate_colocate(colocate_with_variable, self)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        return tensor

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        with device(self._device), ReplicaContext(self._container_strategy(), constant(0)):
            return fn(*args, **kwargs)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        return value

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        return self._update_non_slot(None, fn, (var, *args), kwargs, group)

    def _update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        with device(self._device), UpdateContext(self._device):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def _experimental_run_steps_on_iterator(
        self, fn: Any, iterator: Any, iterations: Any, initial_loop_values: Any
    ) -> MultiStepContext:
        return run_steps(self, fn, iterator, iterations, initial_loop_values)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device."""
        return (self._device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The device."""
        return (self._device,)

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """The device."""
        return (self._device,)
