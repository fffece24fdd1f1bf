"""The pool: names, order, de-duplication, options."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from opdock.devices.pool import PREFIX, DevicePool, PoolOptions
from opdock.plugins.records import BackendSpec, DeviceAttributes, ProbedDevice


def backend(name, device_type, own_type, priority, **fields):
    return BackendSpec(
        name=name, device_type=device_type, own_type=own_type, api=(1, 0), priority=priority,
        probe="m:p", device="m:D", kernels=(), **fields,
    )  # fmt: skip


CPU = backend("host", "CPU", "CPU", 0)
FAST = backend("fast", "GPU", "FAST", 200)
OPEN = backend("open", "GPU", "OPEN", 100)
SHADOW = backend("shadow", "SHADOW", "SHADOW", 300, automatic=False)


def device(spec, index=0, **fields):
    return ProbedDevice(spec=spec, attributes=DeviceAttributes(index=index, **fields))


HOST = device(CPU, kind="cpu", features=frozenset({"virtual"}))


def short(names):
    return [n.removeprefix(f"{PREFIX}/device:") for n in names]


def pool(*devices, **options):
    return DevicePool.build(devices, PoolOptions(**options))


def test_one_cpu_has_one_name():
    (cpu,) = pool(HOST)
    assert cpu.name == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert cpu.aliases == ()
    assert cpu.automatic


def test_a_pool_counts_each_hardware_once_and_the_better_backend_keeps_it():
    found = pool(
        HOST,
        device(OPEN, 0, physical_id="pci:1"),
        device(OPEN, 1, physical_id="pci:3"),
        device(FAST, 0, physical_id="pci:1"),
        device(FAST, 1, physical_id="pci:2"),
    )
    assert short(found.names()) == ["CPU:0", "GPU:0", "GPU:1", "GPU:2", "OPEN:0"]
    by_name = {d.name.rpartition("device:")[2]: d for d in found}
    assert short(by_name["GPU:0"].aliases) == ["FAST:0"]
    assert short(by_name["GPU:1"].aliases) == ["FAST:1"]
    assert short(by_name["GPU:2"].aliases) == ["OPEN:1"]
    assert not by_name["OPEN:0"].automatic
    assert found.find(f"{PREFIX}/device:OPEN:1") is by_name["GPU:2"]
    assert found.matching("OPEN", 0) == [by_name["OPEN:0"]]
    assert found.matching("OPEN") == [by_name["OPEN:0"], by_name["GPU:2"]]


def test_hardware_without_an_id_is_never_merged():
    assert short(pool(device(OPEN), device(FAST)).names()) == ["GPU:0", "GPU:1"]


def test_a_cpu_never_joins_the_gpu_pool():
    found = pool(HOST, device(OPEN, 0, kind="cpu"), device(OPEN, 1, kind="gpu"))
    assert short(found.names()) == ["CPU:0", "GPU:0", "OPEN:0"]
    assert [d.own_index for d in found.matching("GPU")] == [1]
    assert not found.matching("OPEN", 0)[0].automatic


def test_best_first_and_nothing_unasked():
    found = pool(HOST, device(SHADOW), device(FAST))
    assert short(d.name for d in found.matching()) == ["GPU:0", "CPU:0"]
    assert short(d.name for d in found) == ["SHADOW:0", "GPU:0", "CPU:0"]
    assert short(d.name for d in found.matching("SHADOW")) == ["SHADOW:0"]


def test_fallbacks_are_the_same_pool_then_by_priority():
    found = pool(HOST, device(FAST, 0), device(FAST, 1), device(OPEN, 0), device(SHADOW))
    start = found.matching("GPU", 1)[0]
    assert short(d.name for d in found.fallbacks(start)) == ["GPU:0", "GPU:2", "CPU:0"]
    assert short(d.name for d in found.fallbacks(found.matching("CPU")[0]))[-1] == "GPU:2"


def test_device_count_limits_and_multiplies():
    both = (HOST, device(FAST, 0), device(FAST, 1))
    assert short(pool(*both, device_count={"GPU": 1}).names()) == ["CPU:0", "GPU:0"]
    assert short(pool(*both, device_count={"GPU": 0}).names()) == ["CPU:0"]
    many = pool(*both, device_count={"CPU": 3, "GPU": 7})
    assert short(many.names()) == ["CPU:0", "CPU:1", "CPU:2", "GPU:0", "GPU:1"]
    assert [d.own_index for d in many.matching("CPU")] == [0, 1, 2]


def test_a_limited_own_type_is_limited_outside_the_pool():
    devices = [device(OPEN, i, kind="cpu") for i in range(2)]
    assert short(pool(HOST, *devices, device_count={"OPEN": 1}).names()) == ["CPU:0", "OPEN:0"]


def test_visible_devices_are_reordered():
    devices = [device(FAST, i, physical_id=f"pci:{i}") for i in range(3)]
    found = pool(HOST, *devices, visible={"GPU": (2, 0)})
    assert [d.probed.attributes.physical_id for d in found.matching("GPU")] == ["pci:2", "pci:0"]
    with pytest.raises(ValueError, match="invalid GPU id '5' but visible device count is 3"):
        pool(HOST, *devices, visible={"GPU": (5,)})


def test_options_from_a_config():
    def config(text):
        gpu = SimpleNamespace(visible_device_list=text)
        return SimpleNamespace(device_count={"CPU": 2}, gpu_options=gpu)

    assert PoolOptions.from_config(None) == PoolOptions()
    read = PoolOptions.from_config(config("1,0"))
    assert (read.device_count, read.visible) == ({"CPU": 2}, {"GPU": (1, 0)})
    assert PoolOptions.from_config(config("")).visible == {}
    with pytest.raises(ValueError, match="Could not parse entry"):
        PoolOptions.from_config(config("1,x"))
    with pytest.raises(ValueError, match="duplicate"):
        PoolOptions.from_config(config("1,1"))
