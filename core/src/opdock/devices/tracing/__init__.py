"""What a backend that traces whole programs takes from core; also as `opdock.plugin.tracing`.

Tracers know arrays. These are the parts of a program that are none, told in arrays: checks of
values, lists that a loop records for its gradient, what goes through loops and branches, and a
kernel with variables among its inputs. All of it works over the device's namespace `xp`, which has,
beyond the array API, `is_traced`, and for lists `part(array, starts, shape)` and
`set_part(array, starts, part)`, blocks whose place may be traced.
"""

from opdock.devices.tracing.carry import Carry
from opdock.devices.tracing.deferred import defer, deferring
from opdock.devices.tracing.lists import OPS, Rows, gives_list, is_known, turns
from opdock.devices.tracing.traced import TracedKernel, inputs_traced

__all__ = [
    "OPS", "Carry", "Rows", "TracedKernel", "defer", "deferring", "gives_list", "inputs_traced",
    "is_known", "turns",
]  # fmt: skip
