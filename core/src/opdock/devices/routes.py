"""Copy routes: the direct ways between the memories of devices that plugins bring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from opdock.devices.protocols import Buffer
from opdock.fields import check_fields
from opdock.late import record

HOST: Final = "host"
"""The place of plain NumPy arrays; no device type can have this lower-case name."""

Copy = Callable[[Any, Any, Any], Buffer]


@record(frozen=True, kw_only=True)
class CopyRoute:
    """A direct way from the buffers of one device type to those of another.

    Attributes:
        src, dst: own types of the two backends; equal ones copy between devices of one backend.
            A backend whose devices work on NumPy arrays, or `HOST`, stands for host memory.
        copy: `copy(buffer, src_device, dst_device) -> buffer`; for `HOST` the device is None. The
            work that makes `buffer` may still be queued: a copy that does not join its device's
            queue calls `src_device.synchronize()` first. `UnimplementedError` for what it does not
            carry, which goes through host memory then.
        cost: relative cost; a plain step between a device and host memory costs 1.0.
        shares: whether the new buffer may share memory with the old one. Such a way is taken only
            for results that nothing writes again.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    src: str
    dst: str
    copy: Copy
    cost: float = 0.5
    shares: bool = False

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise TypeError(f"CopyRoute.{name} must be a device type, got {value!r}")
        if not callable(self.copy):
            raise TypeError(f"CopyRoute.copy must be callable, got {self.copy!r}")
        if not _takes_three(self.copy):
            raise TypeError(
                "CopyRoute.copy must take (buffer, src_device, dst_device), got "
                f"{self.name}{inspect.signature(self.copy)}"
            )
        check_fields(self, "CopyRoute.")
        if not self.cost > 0:
            raise ValueError(f"CopyRoute.cost must be positive, got {self.cost!r}")

    @property
    def name(self) -> str:
        """What traces and explanations call it: where its function lives."""
        target = self.copy
        module = getattr(target, "__module__", "") or ""
        return f"{module}.{getattr(target, '__qualname__', type(target).__qualname__)}"


def _takes_three(copy: Copy) -> bool:
    try:
        inspect.signature(copy).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # a function in C need not say what it takes
        return True
    return True


class RouteTable:
    """All copy routes that plugins brought."""

    def __init__(self, routes: Iterable[CopyRoute] = ()) -> None:
        self._routes: list[CopyRoute] = []
        for route in routes:
            self.add(route)

    def add(self, route: CopyRoute) -> None:
        """Adds a route; of two of a kind between the same types the cheaper one stays."""
        same = [r for r in self._routes if _kind(r) == _kind(route)]
        if any(r.cost <= route.cost for r in same):
            return
        self._routes = [r for r in self._routes if r not in same]
        self._routes.append(route)

    def __iter__(self) -> Iterator[CopyRoute]:
        return iter(self._routes)

    def __len__(self) -> int:
        return len(self._routes)


def _kind(route: CopyRoute) -> tuple[Any, ...]:
    return route.src, route.dst, route.shares
