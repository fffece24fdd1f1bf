"""Which classes stand for the objects that a saved model names, by the names' versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "VersionedTypeRegistration", "get_setter", "register_revived_type", "registered_identifiers",
]  # fmt: skip


def _set_attribute(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


@dataclass(frozen=True)
class VersionedTypeRegistration:
    """How an object of one version is made.

    Attributes:
        object_factory: makes it, of a `SavedUserObject`.
        version: the version that is written.
        min_producer_version: the oldest program whose objects these are.
        min_consumer_version: the oldest program that can read them.
        bad_consumers: versions of programs that cannot.
        setter: gives the object an attribute.
    """

    object_factory: Callable[[Any], Any]
    version: int
    min_producer_version: int
    min_consumer_version: int
    bad_consumers: Sequence[int] | None = None
    setter: Callable[[Any, str, Any], None] = _set_attribute

    def reads(self, version: Any) -> bool:
        """Whether an object that was written at a `VersionDef` is of this version."""
        return (
            version.producer >= self.min_producer_version
            and self.version >= version.min_consumer
            and self.version not in version.bad_consumers
        )


_registered: dict[str, list[VersionedTypeRegistration]] = {}


def register_revived_type(
    identifier: str, predicate: Callable[[Any], bool], versions: list[VersionedTypeRegistration]
) -> None:
    """Registers a kind of object.

    Args:
        identifier: its name in saved models.
        predicate: whether an object is of the kind.
        versions: the newest last.

    Raises:
        AssertionError: the name is taken.
    """
    if identifier in _registered:
        raise AssertionError(f"Duplicate registrations for type '{identifier}'")
    _registered[identifier] = sorted(versions, key=lambda v: v.version, reverse=True)


def registered_identifiers() -> list[str]:
    """The names of all kinds."""
    return list(_registered)


def get_setter(proto: Any) -> Callable[[Any, str, Any], None] | None:
    """What gives attributes to an object that a `SavedUserObject` says; None for unknown ones."""
    versions = _registered.get(proto.identifier, [])
    return next((v.setter for v in versions if v.reads(proto.version)), None)
