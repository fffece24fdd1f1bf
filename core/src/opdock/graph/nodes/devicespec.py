"""Device specifications: parsing, merging and printing of TF's device strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class DeviceSpec:
    """A possibly partial device name: `/job:ps/replica:0/task:1/device:GPU:2`.

    Fields that are None are open and are filled by `merge_from` or by placement.
    """

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        # TF accepts "/gpu:0" and "/cpu:0" in lower case; every other type keeps its spelling.
        if device_type is not None and device_type.lower() in ("cpu", "gpu"):
            device_type = device_type.upper()
        self.device_type = device_type
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parses TF's spellings, `/gpu:1` and `/device:GPU:1` alike.

        Raises:
            ValueError: an attribute is unknown or a number is not one.
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Replaces the fields by those of `spec` and returns self; ValueError when malformed."""
        self.job = self.replica = self.task = self.device_type = self.device_index = None
        for part in spec.split("/"):
            if part:
                self._parse_part(part.split(":"), spec)
        return self

    def _parse_part(self, fields: list[str], spec: str) -> None:
        key, n = fields[0], len(fields)
        try:
            if key == "job" and n == 2:
                self.job = fields[1]
            elif key == "replica" and n == 2:
                self.replica = int(fields[1])
            elif key == "task" and n == 2:
                self.task = int(fields[1])
            elif key == "device" and n in (2, 3):
                self._set_type(fields[1], fields[2] if n == 3 else "*", spec)
            elif n in (1, 2) and (key.lower() in ("cpu", "gpu") or (n == 2 and key.isupper())):
                self._set_type(key, fields[1] if n == 2 else "*", spec)
            else:
                raise ValueError(f"Unknown attribute: '{key}' in '{spec}'")
        except ValueError as e:
            if str(e).startswith(("Unknown", "Cannot")):
                raise
            raise ValueError(f"Malformed device specification '{spec}': {e}") from None

    def _set_type(self, device_type: str, index: str, spec: str) -> None:
        if self.device_type is not None:
            raise ValueError(f"Cannot specify multiple device types: {spec}")
        self.device_type = (
            device_type.upper() if device_type.lower() in ("cpu", "gpu") else device_type
        )
        self.device_index = None if index == "*" else int(index)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Overwrites the fields that `dev` sets."""
        for field in DeviceSpec.__slots__:
            value = getattr(dev, field)
            if value is not None:
                setattr(self, field, value)

    def to_string(self) -> str:
        """The canonical spelling, e.g. `/job:w/task:1/device:GPU:0`."""
        out = ""
        if self.job is not None:
            out += f"/job:{self.job}"
        if self.replica is not None:
            out += f"/replica:{self.replica}"
        if self.task is not None:
            out += f"/task:{self.task}"
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            out += f"/device:{self.device_type}:{index}"
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"


def canonical_name(device: Any) -> str:
    """The canonical string of a device given as string, DeviceSpec or None (empty)."""
    if device is None:
        return ""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string()


DeviceFunction = Callable[[Any], str]


def merge_device(spec: Any) -> DeviceFunction:
    """A device function that fills what an op's device leaves open from `spec`."""
    outer = DeviceSpec.from_string(spec or "") if not isinstance(spec, DeviceSpec) else spec
    cache: dict[str, str] = {}

    def merged(op: Any) -> str:
        current = op.device
        found = cache.get(current)
        if found is None:
            out = DeviceSpec.from_string(outer.to_string())
            out.merge_from(DeviceSpec.from_string(current))
            found = cache[current] = out.to_string()
        return found

    return merged
