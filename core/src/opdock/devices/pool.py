"""The pool: which devices a session sees, under which names, and in which order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

from opdock.devices.protocols import DeviceAttributes
from opdock.late import record

PREFIX: Final = "/job:localhost/replica:0/task:0"
"""Where the devices of a session without a cluster live."""

VIRTUAL: Final = "virtual"
"""The feature of devices that `device_count` can multiply."""

_SPECIAL: Final = frozenset({"CPU", "GPU"})
"""Types that say what the hardware is, so hardware of another kind must not claim them."""


class Spec(Protocol):
    """What the pool reads of a backend's record."""

    @property
    def name(self) -> str:
        """The backend's name."""

    @property
    def device_type(self) -> str:
        """The pool that its devices join."""

    @property
    def own_type(self) -> str:
        """The type that always addresses its devices."""

    @property
    def priority(self) -> int:
        """The higher comes first."""

    @property
    def automatic(self) -> bool:
        """Whether placement may choose its devices unasked."""


class Probed(Protocol):
    """What the pool reads of a probed device's record, a dataclass."""

    @property
    def spec(self) -> Spec:
        """The backend."""

    @property
    def attributes(self) -> DeviceAttributes:
        """What the probe found."""

    @property
    def outside(self) -> str:
        """Why it does not join the pool of its type; empty when it does."""


@record(frozen=True)
class PoolOptions:
    """What a session's configuration says about devices.

    Attributes:
        device_count: device type -> how many to use at most; 0 hides the type. Virtual devices are
            multiplied up to it.
        visible: device type -> positions in its pool to keep, in the new order.
        prefix: the task in whose name the devices are called.
    """

    device_count: Mapping[str, int] = field(default_factory=dict)
    visible: Mapping[str, Sequence[int]] = field(default_factory=dict)
    prefix: str = PREFIX

    @classmethod
    def from_config(cls, config: Any, prefix: str = PREFIX) -> PoolOptions:
        """Reads a ConfigProto, or None for the defaults.

        Raises:
            ValueError: `gpu_options.visible_device_list` is malformed.
        """
        if config is None:
            return cls(prefix=prefix)
        counts = {str(k): int(v) for k, v in dict(config.device_count).items()}
        text = getattr(getattr(config, "gpu_options", None), "visible_device_list", "") or ""
        visible = {"GPU": _visible(text)} if text else {}
        return cls(counts, visible, prefix)


def _visible(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"Could not parse entry in 'visible_device_list': '{text}'. "
            "visible_device_list takes comma-separated numbers."
        ) from None
    if len(set(found)) != len(found):
        raise ValueError(f"visible_device_list contained a duplicate entry: {text}")
    return found


@record(frozen=True)
class PoolDevice:
    """A device under its name in a session.

    Attributes:
        name: the canonical name, "/job:localhost/replica:0/task:0/device:GPU:0".
        aliases: other names of the same device, by its backend's own type.
        device_type, index: what the canonical name says.
        probed: the device's record; the manager opens it.
        automatic: whether placement may choose it unasked.
    """

    name: str
    device_type: str
    index: int
    probed: Any
    aliases: tuple[str, ...] = ()
    automatic: bool = True

    @property
    def own_type(self) -> str:
        """The own type of the backend."""
        return str(self.probed.spec.own_type)

    @property
    def own_index(self) -> int:
        """The number among the backend's own devices."""
        return int(self.probed.attributes.index)

    @property
    def priority(self) -> int:
        """The backend's priority."""
        return int(self.probed.spec.priority)

    @property
    def description(self) -> str:
        """What the probe says about the device."""
        return str(self.probed.attributes.description)

    def __str__(self) -> str:
        return self.name


class DevicePool:
    """The devices of one session, best first.

    `/device:<TYPE>:n` counts through all backends of a type, each piece of hardware once;
    `/device:<OWN>:n` is always the n-th device of one backend.
    """

    def __init__(self, devices: Iterable[PoolDevice]) -> None:
        self.devices: tuple[PoolDevice, ...] = tuple(devices)
        self._by_type: dict[str, dict[int, PoolDevice]] = {}
        self._by_name: dict[str, PoolDevice] = {}
        for device in self.devices:
            self._by_name[device.name] = device
            self._by_type.setdefault(device.device_type, {})[device.index] = device
        for device in self.devices:
            for alias in device.aliases:
                self._by_name.setdefault(alias, device)
                own = self._by_type.setdefault(device.own_type, {})
                own.setdefault(device.own_index, device)

    @classmethod
    def build(cls, probed: Iterable[Any], options: PoolOptions | None = None) -> DevicePool:
        """Names the devices that probes found.

        Args:
            probed: records with `spec` and `attributes`, in plugin order.
            options: the session's wishes.

        Raises:
            ValueError: a visible device does not exist.
        """
        options = options or PoolOptions()
        ranked = sorted(probed, key=lambda d: -d.spec.priority)
        pools: dict[str, list[Any]] = {}
        outside: list[Any] = []
        seen: set[tuple[str, str]] = set()
        for device in ranked:
            key = (device.spec.device_type, device.attributes.physical_id)
            if not _joins(device) or (key[1] and key in seen):
                outside.append(device)
                continue
            seen.add(key)
            pools.setdefault(device.spec.device_type, []).append(device)
        found: list[PoolDevice] = []
        for device_type, members in pools.items():
            kept = _visible_of(device_type, members, options)
            kept = _counted(device_type, kept, options.device_count)
            for i, member in enumerate(kept):
                found.append(_named(member, device_type, i, options.prefix))
        for device in outside:
            count = options.device_count.get(device.spec.own_type)
            if count is None or device.attributes.index < count:
                found.append(_own(device, options.prefix))
        found.sort(key=lambda d: (-d.priority, not d.automatic))
        return cls(found)

    def matching(
        self, device_type: str | None = None, index: int | None = None
    ) -> list[PoolDevice]:
        """The devices that a partial specification admits, best first.

        Args:
            device_type: a pool's type or a backend's own; None for all that placement may choose
                unasked.
            index: the number within the type; None for all.
        """
        if device_type is None:
            return [d for d in self.devices if d.automatic and index in (None, d.index)]
        members = self._by_type.get(device_type, {})
        if index is not None:
            return [members[index]] if index in members else []
        return [members[i] for i in sorted(members)]

    def find(self, name: str) -> PoolDevice | None:
        """The device of a full name, canonical or by own type; None when there is none."""
        return self._by_name.get(name)

    def fallbacks(self, device: PoolDevice) -> list[PoolDevice]:
        """Where soft placement may move what `device` declines: its pool, then by priority."""
        others = [d for d in self.devices if d.automatic and d is not device]
        return sorted(others, key=lambda d: d.device_type != device.device_type)

    def types(self) -> list[str]:
        """All device types that address something, sorted."""
        return sorted(self._by_type)

    def names(self) -> list[str]:
        """Canonical names in TF's order: by type, then by number."""
        return [d.name for d in sorted(self.devices, key=lambda d: (d.device_type, d.index))]

    def __iter__(self) -> Iterator[PoolDevice]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)


def _joins(device: Probed) -> bool:
    kind, device_type = device.attributes.kind.upper(), device.spec.device_type
    if device.outside:
        return False
    return not kind or kind == device_type or device_type not in _SPECIAL


def _visible_of(device_type: str, members: list[Any], options: PoolOptions) -> list[Any]:
    wanted = options.visible.get(device_type)
    if wanted is None:
        return members
    for i in wanted:
        if not 0 <= i < len(members):
            raise ValueError(
                f"'visible_device_list' listed an invalid {device_type} id '{i}' "
                f"but visible device count is {len(members)}"
            )
    return [members[i] for i in wanted]


def _counted(device_type: str, members: list[Any], counts: Mapping[str, int]) -> list[Any]:
    count = counts.get(device_type)
    if count is None:
        return members
    members = members[:count]
    virtual = [m for m in members if VIRTUAL in m.attributes.features]
    while virtual and len(members) < count:
        model = virtual[-1]
        taken = [m.attributes.index for m in members if m.spec is model.spec]
        attributes = dataclasses.replace(model.attributes, index=max(taken) + 1)
        members.append(dataclasses.replace(model, attributes=attributes))
    return members


def _named(device: Any, device_type: str, index: int, prefix: str) -> PoolDevice:
    own = f"{prefix}/device:{device.spec.own_type}:{device.attributes.index}"
    name = f"{prefix}/device:{device_type}:{index}"
    aliases = () if device.spec.own_type == device_type else (own,)
    return PoolDevice(name, device_type, index, device, aliases, device.spec.automatic)


def _own(device: Any, prefix: str) -> PoolDevice:
    own_type, index = device.spec.own_type, device.attributes.index
    return PoolDevice(
        f"{prefix}/device:{own_type}:{index}", own_type, index, device, automatic=False
    )
