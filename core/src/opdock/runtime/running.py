"""What a session needs of whatever runs its steps: an engine, or the master of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from opdock.compiler.ir.block import Block
from opdock.compiler.place.experience import Experience
from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.targets import DeviceInfo
from opdock.shapes import Shape

if TYPE_CHECKING:
    import numpy as np

    from opdock.runtime.inspect.explain import Explanation

__all__ = ["Runnable", "Runner"]


class Runnable(Protocol):
    """What runs a step: a program, or the parts of one in several tasks."""

    @property
    def block(self) -> Block:
        """The nodes."""
        ...

    @property
    def steps_run(self) -> int:
        """How often it ran."""
        ...

    @property
    def shared_fetches(self) -> list[bool]:
        """For each fetch whether others may hold its buffer."""
        ...

    @property
    def kept_feeds(self) -> list[int]:
        """The positions of feeds that outlive the step."""
        ...

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Runs one step and returns the fetched buffers."""
        ...


class Runner(Protocol):
    """What compiles the steps of a session and runs them.

    Attributes:
        experience: what steps have taught while they ran.
    """

    experience: Experience

    def prepare(self) -> None:
        """Opens devices before the first step needs them."""
        ...

    def list_devices(self) -> list[DeviceInfo]:
        """The devices of the session."""
        ...

    def explain(self, program: Any, traced: Any) -> Explanation:
        """The decisions about what `compile` gave.

        Args:
            program: that.
            traced: the RunMetadata of a traced step of it, or None.
        """
        ...

    def variables(self) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """The values of the variables that have one, by container and name."""
        ...

    def close(self) -> None:
        """Drops the session's state; steps that wait for something are cancelled."""
        ...

    def compile(
        self,
        graph: Graph,
        fetches: Sequence[Tensor],
        runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
        as_written: bool = False,
    ) -> Runnable:
        """What runs a step; the arguments are those of `Compiler.step`."""
        ...

    def plain(self, program: Any) -> bool:
        """Whether what `compile` gave may run without a look at options."""
        ...

    def run(
        self, program: Any, values: Sequence[Any], options: Any, metadata: Any
    ) -> Sequence[Any]:
        """One step of what `compile` gave under RunOptions, filling RunMetadata."""
        ...
