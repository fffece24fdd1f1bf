"""What of a graph depends on when its operations run."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["GraphMode"]


class GraphMode:
    """The part of `Graph` that another takes over whose operations run as they are made."""

    eager: ClassVar[bool] = False
    """Whether operations run when they are made."""
    _count: list[int]
    _names_in_use: dict[str, int]
    _seed_used: bool

    @property
    def _program(self) -> Any:
        """The graph that the program's variables are of."""
        return self

    @property
    def _program_key(self) -> Any:
        """What the program's variables have in common: their graph, if there are several."""
        return self

    def _operation_seed(self) -> int:
        """The seed of the next random operation that is given none of its own."""
        self._seed_used = True
        return self._count[0]

    def _names_of_bodies(self) -> dict[str, int]:
        """Where bodies of loops and branches note the names in use."""
        return self._names_in_use

    def _resource_name(self, name: str) -> str:
        """The name by which a session keeps the state of what is made under `name`."""
        return name

    def _as_run(self, function: Any) -> Any:
        """A function as a call runs it whose results are the first ones."""
        return function

    def _record(self, tape: Any = None) -> Any:
        """What keeps operations that run as they are made; a graph keeps its own."""
        raise AssertionError("only where operations run as they are made are they not kept")
