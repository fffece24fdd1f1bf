"""What a device's own functions gave, looked at as far as costs nothing: whether it is of the kind.

`OPDOCK_CHECK=1` looks at values, types and shapes as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import errors, shapes
from opdock.devices.protocols import Device


def downloading(download: Callable[[Any], Any], device: str) -> Callable[[Any], Any]:
    """The `download` of the device of that name; InternalError where it gives no host array."""

    def carry(buffer: Any) -> Any:
        found = download(buffer)
        if isinstance(found, (np.ndarray, np.generic)):
            return found
        got = "None" if found is None else f"a {type(found).__name__}"
        text = f"the download from {device} gave {got}, expected a numpy.ndarray"
        raise errors.InternalError(None, None, text)

    carry.__dict__["unchecked"] = download
    return carry


def arriving(carry: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """A way to a device, called `what`; InternalError where no buffer arrives."""

    def checked(value: Any) -> Any:
        found = carry(value)
        if hasattr(found, "shape") and hasattr(found, "dtype"):
            return found
        got = "None" if found is None else f"a {type(found).__name__}"
        text = f"the {what} gave {got}, expected a buffer with shape and dtype"
        raise errors.InternalError(None, None, text)

    checked.__dict__["unchecked"] = carry
    return checked


def uploading(device: Device) -> Callable[[Any], Any]:
    """The device's `upload`; InternalError where it gives no buffer."""
    upload = device.upload

    def carry(value: Any) -> Any:
        return as_buffer(upload(np.asarray(value)), device, "upload")

    carry.__dict__["unchecked"] = lambda value: upload(np.asarray(value))
    return carry


def unchecked(carry: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same without the look, for who looks closer."""
    found: Callable[[Any], Any] = getattr(carry, "unchecked", carry)
    return found


def as_buffer(made: Any, device: object, what: str) -> Any:
    """The buffer that a device gave.

    Raises:
        InternalError: it has no shape or no dtype; the message names the device's class and its
            function.
    """
    if hasattr(made, "shape") and hasattr(made, "dtype"):
        return made
    raise strange(made, device, what, "a buffer with shape and dtype")


def strange(found: Any, device: object, what: str, wanted: str) -> errors.InternalError:
    """The error of a function that gave something else than is `wanted`."""
    got = "None" if found is None else f"a {type(found).__name__}"
    if isinstance(shape := getattr(found, "shape", None), tuple):
        got += f" of shape {shapes.text(shape)}"
    kind = f"{type(device).__module__}.{type(device).__qualname__}"
    return errors.InternalError(None, None, f"{kind}.{what} gave {got}, expected {wanted}")
