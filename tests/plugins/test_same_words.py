"""A mistake reads the same on every device that has a kernel for the op."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.graph.nodes import registry
from opdock.testing.harness.sample import ErrorSample, error_samples_for
from opdock.testing.levels.device import DeviceUnderTest, open_device
from opdock.testing.levels.forward import provoked


def told(device: DeviceUnderTest, op: str, sample: ErrorSample) -> str:
    """The first line of what a call fails with, without the device."""
    error = provoked(device, op, sample)
    return f"{type(error).__name__}: {error}".split("\n", 1)[0].replace(device.pool.name, "")


def shared(*devices: DeviceUnderTest) -> Iterator[tuple[str, ErrorSample]]:
    """Bad calls of ops that all have kernels for: what others are made of speaks for itself."""
    for spec in registry.all_ops():
        if all(spec.name in device.kernels for device in devices):
            for sample in error_samples_for(spec.name):
                if sample.phase == "run":
                    yield spec.name, sample


def test_a_mistake_reads_the_same_on_every_device() -> None:
    cpu, echo = open_device("cpu:0"), open_device("echo:0")
    tried, apart = 0, []
    for op, sample in shared(cpu, echo):
        tried += 1
        words = told(cpu, op, sample), told(echo, op, sample)
        if words[0] != words[1]:
            apart.append(f"{op} {sample.tag}: {words}")
    assert tried > 100
    assert not apart, "\n".join(apart)
