"""Device specifications: parsing, merging and printing of TF's device strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self


def _device_type(name: Any) -> str:
    """TF accepts "/gpu:0" and "/cpu:0" in lower case; every other type keeps its spelling."""
    text = str(name)
    return text.upper() if text.lower() in ("cpu", "gpu") else text


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {
    "job": str,
    "replica": int,
    "task": int,
    "device_type": _device_type,
    "device_index": int,
}


class DeviceSpec:
    """A possibly partial device name: `/job:ps/replica:0/task:1/device:GPU:2`.

    Fields that are None are open and are filled by `merge_from` or by placement.
    """

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    job: str | None
    replica: int | None
    task: int | None
    device_type: str | None
    device_index: int | None

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = job
        self.replica = replica
        self.task = task
        self.device_type = device_type
        self.device_index = device_index

    def __setattr__(self, field: str, value: Any) -> None:
        convert = _CONVERT.get(field)
        object.__setattr__(self, field, value if value is None or not convert else convert(value))

    @classmethod
    def from_string(cls, spec: str | None) -> Self:
        """Parses TF's spellings, `/gpu:1` and `/device:GPU:1` alike.

        Raises:
            ValueError: an attribute is unknown or a number is not one.
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str | None) -> Self:
        """Replaces the fields by those of `spec` and returns self; ValueError when malformed."""
        self.job = self.replica = self.task = self.device_type = self.device_index = None
        text = spec or ""
        for part in text.split("/"):
            if part:
                self._parse_part(part.split(":"), text)
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
        self.device_type = device_type
        self.device_index = None if index == "*" else int(index)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Overwrites the fields that `dev` sets."""
        for field, value in dev._fields().items():
            if value is not None:
                setattr(self, field, value)

    def make_merged_spec(self, dev: DeviceSpec) -> Self:
        """A new spec with the fields that `dev` sets, and this one's elsewhere."""
        merged = self.replace()
        merged.merge_from(dev)
        return merged

    def replace(self, **kwargs: Any) -> Self:
        """A new spec with some fields, named as the constructor names them, set anew."""
        return self.__class__(**{**self._fields(), **kwargs})

    def _fields(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in DeviceSpec.__slots__}

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
        if not isinstance(current, str):
            current = canonical_name(current)
        found = cache.get(current)
        if found is None:
            inner = DeviceSpec.from_string(current)
            found = cache[current] = outer.make_merged_spec(inner).to_string()
        return found

    return merged
