"""Buffers kept by runtime objects (lists, tensor arrays): each remembers where it lives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opdock.kernels.signature import NodeSig


class Element(NamedTuple):
    """A buffer, or any other value of a slot, and the device that holds it."""

    value: Any
    device: Any

    def on(self, device: Any) -> Any:
        """The buffer where `device` can use it, copied if it lives elsewhere."""
        if self.device is device or not hasattr(self.value, "shape"):
            return self.value
        from_host, to_host = _is_host(self.device), _is_host(device)
        if from_host and to_host:
            return self.value
        host = self.value if from_host else self.device.download(self.value)
        return host if to_host else device.upload(np.asarray(host))


def _is_host(device: Any) -> bool:
    return device is None or bool(getattr(device, "is_host", False))


def element(value: Any, sig: NodeSig) -> Element:
    """A kernel's argument as an element."""
    return Element(value, sig.device)


def unwrap(handle: Any) -> Any:
    """The object behind a handle that came from another device."""
    return getattr(handle, "home", handle)
