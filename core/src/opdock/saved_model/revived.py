"""Which classes stand for the objects that a saved model names, by the names' versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opdock.io import protos

__all__ = [
    "VersionedTypeRegistration", "deserialize", "get_setter", "register_revived_type",
    "registered_identifiers", "serialize",
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


@dataclass(frozen=True)
class _Kind:
    """What is registered of a kind of object: what is one, and its versions, the newest first."""

    holds: Callable[[Any], bool]
    versions: list[VersionedTypeRegistration]


_registered: dict[str, _Kind] = {}


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
    newest_first = sorted(versions, key=lambda v: v.version, reverse=True)
    _registered[identifier] = _Kind(predicate, newest_first)


def registered_identifiers() -> list[str]:
    """The names of all kinds."""
    return list(_registered)


def _version_of(proto: Any) -> VersionedTypeRegistration | None:
    kind = _registered.get(proto.identifier)
    return next((v for v in kind.versions if v.reads(proto.version)), None) if kind else None


def get_setter(proto: Any) -> Callable[[Any, str, Any], None] | None:
    """What gives attributes to an object that a `SavedUserObject` says; None for unknown ones."""
    found = _version_of(proto)
    return None if found is None else found.setter


def serialize(obj: Any) -> Any:
    """The `SavedUserObject` of an object of a registered kind; None where it is of none."""
    for identifier, kind in _registered.items():
        if kind.holds(obj):
            newest = kind.versions[0]
            proto = protos.SavedUserObject(identifier=identifier)
            proto.version.producer = newest.version
            proto.version.min_consumer = newest.min_consumer_version
            proto.version.bad_consumers.extend(newest.bad_consumers or ())
            return proto
    return None


def deserialize(proto: Any) -> tuple[Any, Callable[[Any, str, Any], None]] | None:
    """An object that a `SavedUserObject` says, and what gives it attributes; None if unknown."""
    found = _version_of(proto)
    return None if found is None else (found.object_factory(proto), found.setter)
