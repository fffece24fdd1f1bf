"""The defaults of `BaseDevice`."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.devices.base import BaseDevice
from opdock.devices.protocols import (
    ArenaDevice,
    Buffer,
    DeviceAttributes,
    RecordingDevice,
    check_device,
    has_arena,
    records,
)
from opdock.dtypes import float32


class Minimal(BaseDevice):
    def upload(self, array):
        return np.array(array)

    def download(self, buffer):
        return np.array(buffer)


def test_four_methods_are_enough():
    device = Minimal(DeviceAttributes(index=1, description="small", memory_bytes=64))
    buffer = device.empty((2, 3), float32)
    assert isinstance(buffer, Buffer)
    assert (buffer.shape, buffer.dtype) == ((2, 3), np.float32)
    assert device.memory().limit == 64
    assert device.memory().in_use is None
    device.synchronize()
    device.configure({"intra_op_parallelism_threads": 2, "unknown": 1})
    device.close()
    assert repr(device) == "<Minimal 1: small>"


def test_what_is_missing_is_named():
    device = BaseDevice(DeviceAttributes(index=0))
    with pytest.raises(NotImplementedError, match=r"BaseDevice must define upload\(\)"):
        device.upload(np.ones(1))


@pytest.mark.parametrize(
    "fields", [{"index": -1}, {"index": "0"}, {"index": 0, "description": None}]
)
def test_malformed_attributes_are_refused(fields):
    with pytest.raises((TypeError, ValueError), match="DeviceAttributes"):
        DeviceAttributes(**fields)


class Recorder(Minimal):
    def record(self, work):
        return "not today"

    def duplicate(self, buffer):
        return buffer

    def assign(self, target, source):
        target[...] = source


def test_what_is_no_device_is_told_what_it_lacks():
    with pytest.raises(TypeError, match="^object lacks attributes, borrow, close, configure, "):
        check_device(object())
    check_device(Minimal(DeviceAttributes(index=0)))


def test_a_device_that_forgets_its_base_is_told_so():
    forgetful = type("Forgetful", (Minimal,), {"__init__": lambda self, attributes: None})
    with pytest.raises(TypeError, match=r"Forgetful lacks attributes: its __init__ should call"):
        check_device(forgetful(DeviceAttributes(index=0)))


def test_memory_is_told_in_bytes():
    assert DeviceAttributes(index=0, memory_bytes=np.uint64(1 << 40)).memory_bytes == 1 << 40
    with pytest.raises(TypeError, match="memory_bytes must be an int or None, got '4G'"):
        DeviceAttributes(index=0, memory_bytes="4G")


def test_capabilities_are_found_by_their_methods():
    plain, recorder = (kind(DeviceAttributes(index=0)) for kind in (Minimal, Recorder))
    assert not records(plain) and not has_arena(plain)
    assert records(recorder) and isinstance(recorder, RecordingDevice)
    assert not isinstance(plain, RecordingDevice) and not isinstance(recorder, ArenaDevice)
    check_device(recorder)
    half = type("Half", (Minimal,), {"record": Recorder.record})
    with pytest.raises(TypeError, match="Half has record: record, assign go together"):
        check_device(half(DeviceAttributes(index=0)))


@pytest.mark.parametrize("kind", ["float32", np.float32], ids=["name", "numpy"])
def test_what_a_device_holds_are_dtypes(kind):
    device = Minimal(DeviceAttributes(index=0))
    device.dtypes = {kind}
    with pytest.raises(TypeError, match="Minimal.dtypes must hold dtypes of opdock.plugin, such"):
        check_device(device)


def test_a_data_format_is_one_of_two():
    device = Minimal(DeviceAttributes(index=0))
    device.data_format = "NCWH"
    with pytest.raises(ValueError, match="must be 'NHWC', 'NCHW' or None, got 'NCWH'"):
        check_device(device)
