"""Records whose methods are written late are dataclasses in all else."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from opdock.late import record
from opdock.plugin import DeviceAttributes


@record(frozen=True, slots=True)
class Point:
    """A place, frozen and small."""

    x: int
    y: int = 2
    words: list[str] = dataclasses.field(default_factory=list, compare=False)


@record(frozen=True)
class Near(Point):
    """One with a name, which its base does not know."""

    name: str = "near"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())


@record
class Open:
    """What may change."""

    value: int

    def __repr__(self) -> str:
        return f"<{self.value}>"


@record(eq=False, kw_only=True)
class Same:
    """One that is equal to itself alone."""

    value: int


def _plain(cls: type, **options: Any) -> Any:
    """What `dataclass` makes of the same body."""
    body = {k: v for k, v in vars(cls).items() if k in {"__annotations__", "__post_init__"}}
    body |= {f.name: copy.copy(f) for f in dataclasses.fields(cls)}
    return dataclasses.dataclass(**options)(type(cls.__name__, (), body))


@pytest.mark.parametrize(
    ("cls", "options"),
    [(Point, {"frozen": True}), (Open, {}), (Same, {"eq": False, "kw_only": True})],
)
def test_methods_are_those_of_a_dataclass(cls: Any, options: dict[str, bool]) -> None:
    plain = _plain(cls, **options)
    assert inspect.signature(cls) == inspect.signature(plain)
    assert [f.name for f in dataclasses.fields(cls)] == [f.name for f in dataclasses.fields(plain)]
    assert cls.__match_args__ == plain.__match_args__
    assert (cls.__hash__ is None) == (plain.__hash__ is None)
    with pytest.raises(TypeError) as found:
        cls()
    with pytest.raises(TypeError) as wanted:
        plain()
    assert str(found.value).split(".")[-1] == str(wanted.value).split(".")[-1]


def test_instances_compare_print_and_hash_by_their_fields() -> None:
    one = Point(1, words=["a"])
    assert one == Point(1, 2) != Point(1, 3)
    assert one != (1, 2)
    assert hash(one) == hash(Point(1)) != hash(Point(2))
    assert repr(one) == "Point(x=1, y=2, words=['a'])"
    assert dataclasses.replace(one, y=5) == Point(1, 5)
    assert dataclasses.asdict(one) == {"x": 1, "y": 2, "words": ["a"]}
    assert Point(1).words is not Point(1).words


def test_what_inherits_has_all_fields_and_prepares_itself() -> None:
    near = Near(1, name="x")
    assert near.name == "X" and near.y == 2
    assert repr(near) == "Near(x=1, y=2, words=[], name='X')"
    assert near != Point(1) and near == Near(1, name="x")


@pytest.mark.parametrize("instance", [Point(1, 7, ["a"]), Near(3)])
def test_frozen_records_refuse_changes_and_can_be_copied(instance: Any) -> None:
    for change in (lambda: setattr(instance, "x", 5), lambda: delattr(instance, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
            change()
    for other in (
        copy.copy(instance), copy.deepcopy(instance), pickle.loads(pickle.dumps(instance))
    ):  # fmt: skip
        assert other == instance and other is not instance
        assert other.words == instance.words


def test_what_a_class_says_itself_stays() -> None:
    assert repr(Open(3)) == "<3>"
    assert Open(3) == Open(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open(3))
    one = Same(value=1)
    assert one == one and one != Same(value=1) and hash(one) == object.__hash__(one)


@pytest.mark.parametrize("made_before", [0, 20])
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), {}), ((1, 2, [], 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 1}),
        ((1,), {"words": ["a"]}), ((), {"y": 3, "x": 1}),
    ],
)  # fmt: skip
def test_first_instances_are_made_as_later_ones(
    made_before: int, args: tuple[Any, ...], words: dict[str, Any]
) -> None:
    @record(frozen=True)
    class Fresh:
        """Like a point."""

        x: int
        y: int = 2
        words: list[str] = dataclasses.field(default_factory=list)
        z: int = dataclasses.field(default=7, init=False)

    plain = _plain(Fresh, frozen=True)
    for n in range(made_before):
        Fresh(n)
    try:
        wanted = plain(*args, **words)
    except TypeError as e:
        with pytest.raises(TypeError) as found:
            Fresh(*args, **words)
        assert str(found.value).split(".")[-1] == str(e).split(".")[-1]
    else:
        assert vars(Fresh(*args, **words)) == vars(wanted)


def test_a_method_is_written_when_it_is_called() -> None:
    @record(frozen=True)
    class Late:
        """One that nobody has used."""

        x: int

    def pending() -> set[str]:
        return {n for n, v in vars(Late).items() if hasattr(v, "written")}

    assert pending() == {"__init__", "__repr__", "__eq__", "__hash__"}
    one = Late(1)
    assert pending() == {"__init__", "__repr__", "__eq__", "__hash__"}
    assert [Late(n).x for n in range(20)] == [*range(20)]
    assert pending() == {"__repr__", "__eq__", "__hash__"}
    assert repr(one).endswith("Late(x=1)")
    assert pending() == {"__eq__", "__hash__"}


def test_records_of_the_plugin_api_show_their_signature() -> None:
    assert list(inspect.signature(DeviceAttributes).parameters)[:2] == ["index", "description"]
