"""What a device's functions give is looked at as far as costs nothing, checks or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import opdock as tf
import opdock.plugin as api
from opdock.compiler.emit.arena import allocate
from opdock.devices.answers import downloading, unchecked, uploading


class Device(api.BaseDevice):
    """Gives what it is told to."""

    gives: Any = None

    def upload(self, array: Any) -> Any:
        return self.gives

    def download(self, buffer: Any) -> Any:
        return self.gives

    def empty(self, shape: Any, dtype: Any) -> Any:
        return self.gives

    def arena(self, nbytes: int, places: Any) -> Any:
        return self.gives


@pytest.fixture
def device() -> Device:
    return Device(api.DeviceAttributes(index=0, description="odd"))


@pytest.mark.parametrize(("gives", "got"), [(None, "None"), ([1.0], "a list"), (1.0, "a float")])
def test_what_is_no_array_is_told(device: Device, gives: Any, got: str) -> None:
    device.gives = gives
    with pytest.raises(
        tf.errors.InternalError, match=rf"download from D:0 gave {got}, expected a numpy.ndarray"
    ):
        downloading(device.download, "D:0")(object())
    with pytest.raises(
        tf.errors.InternalError, match=rf"Device.upload gave {got}, expected a buffer with shape"
    ):
        uploading(device)([1.0])
    assert unchecked(downloading(device.download, "D:0"))(object()) is gives
    assert unchecked(uploading(device))([1.0]) is gives


@pytest.mark.parametrize("gives", [np.ones(2), np.float32(1), np.array([b"a"], object)])
def test_what_is_one_goes_on(device: Device, gives: Any) -> None:
    device.gives = gives
    assert downloading(device.download, "D:0")(object()) is gives
    assert uploading(device)([1.0]) is gives


@pytest.mark.parametrize("offset", [None, 0])
@pytest.mark.parametrize("gives", [None, [None], []])
def test_planned_memory_that_is_none_is_told(device: Device, gives: Any, offset: Any) -> None:
    device.gives = gives
    target: Any = Mock(device=device)
    planned: Any = SimpleNamespace(
        offset=offset, form=SimpleNamespace(target=target, shape=(2,), dtype=tf.float32)
    )
    what = "empty" if offset is None else "arena"
    with pytest.raises(tf.errors.InternalError, match=rf"Device.{what} gave .*, expected a "):
        allocate([planned], {} if offset is None else {target: 64})
