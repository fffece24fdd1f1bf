"""What a backend that traces whole programs takes from core; also as `opdock.plugin.tracing`.

Tracers know arrays. These are the parts of a program that are none, told in arrays: checks of
values, lists that a loop records for its gradient, tensor arrays, what goes through loops and
branches, and a kernel with variables among its inputs. All of it works over the device's namespace
`xp`, which has, beyond the array API, `is_traced`, and for lists and tensor arrays
`part(array, starts, shape)` and `set_part(array, starts, part)`, blocks whose place may be traced.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from opdock.devices.tracing.carry import Carry
from opdock.devices.tracing.counting import is_known, turns
from opdock.devices.tracing.deferred import defer, deferring
from opdock.devices.tracing.lists import LIST_OPS, Rows, gives_list
from opdock.devices.tracing.places import ARRAY_OPS, Places
from opdock.devices.tracing.traced import TracedKernel, inputs_traced

__all__ = [
    "OPS", "Carry", "Places", "Rows", "TracedKernel", "defer", "deferring", "gives_list",
    "inputs_traced", "is_known", "turns",
]  # fmt: skip

OPS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({**LIST_OPS, **ARRAY_OPS})
"""What takes or gives lists or tensor arrays: functions of the namespace, the node and its inputs.
"""
