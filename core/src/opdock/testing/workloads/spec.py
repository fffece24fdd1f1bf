"""What a workload is: its inputs, its TensorFlow 1 program, and the right answer from NumPy.

Workloads run in the interpreters of other libraries too: all that they import is NumPy and the
standard library.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

CHECKED = 3  # so many first steps are compared with each other and with the answer


@dataclass
class Program:
    """A built graph, ready for a session.

    Attributes:
        fetches: what a step fetches; operations among it have no value.
        feeds: the feeds of the steps, in turn.
        step: instead of fetches, a function that does a step, given what tells seconds, and
            returns its seconds and values.
    """

    fetches: Any = None
    feeds: Sequence[Mapping[Any, Any]] = ({},)
    step: Callable[[Callable[[], float]], tuple[float, Any]] | None = None


@dataclass(frozen=True)
class Workload:
    """One program to measure.

    Attributes:
        name: as on the command line and in the tables.
        about: what a step computes; `{name}` is replaced by that size.
        sizes: the arguments of `data` when it is measured.
        smoke: other, tiny ones, for which `answer` is quick.
        data: makes the inputs and first weights, the same in every library.
        program: builds the graph in the default graph of a TF1 module.
        answer: the values of the first CHECKED steps in float64, by another way than the program.
        tolerance: how far two right results may be apart, in parts of an array's largest value.
        changes: whether a step changes what the next one computes.
        host: whether it computes next to nothing, so that a device makes no difference.
        section: the part of the page that it is in.
        files: writes the files that it reads, in the interpreter that measures; such workloads
            have `folder` among the arguments of `data`.
    """

    name: str
    about: str
    sizes: Mapping[str, Any]
    smoke: Mapping[str, Any]
    data: Callable[..., SimpleNamespace]
    program: Callable[[Any, SimpleNamespace], Program]
    answer: Callable[[SimpleNamespace], list[Any]]
    tolerance: float = 1e-4
    changes: bool = False
    host: bool = False
    section: str = "workloads"
    files: Callable[[SimpleNamespace], None] | None = None

    def text(self, sizes: Mapping[str, Any] | None = None) -> str:
        """What a step computes, sizes included."""
        return self.about.format(**{**self.sizes, **(sizes or {})})

    @contextlib.contextmanager
    def prepared(self, sizes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The sizes, while the files of the workload at these sizes are there."""
        if self.files is None:
            yield dict(sizes)
            return
        with tempfile.TemporaryDirectory() as folder:
            found = {**sizes, "folder": folder}
            self.files(self.inputs(found))
            yield found

    def inputs(self, sizes: Mapping[str, Any]) -> SimpleNamespace:
        """The inputs at some sizes; those not named are the workload's own."""
        return self.data(**{**self.sizes, **sizes})


def random(seed: int) -> np.random.RandomState:
    """The generator whose stream NumPy promises never to change."""
    return np.random.RandomState(seed)


def normal(rng: np.random.RandomState, *shape: int, scale: float = 1.0) -> np.ndarray:
    """float32 from a normal distribution."""
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def weights(rng: np.random.RandomState, *shape: int) -> np.ndarray:
    """A kernel whose layer keeps the variance of what goes through it and a relu."""
    return normal(rng, *shape, scale=(2.0 / np.prod(shape[:-1])) ** 0.5)


def labelled(
    rng: np.random.RandomState, count: int, shape: tuple[int, ...], classes: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """`count` batches of inputs with a class each."""
    return [
        (normal(rng, *shape), rng.randint(0, classes, shape[0]).astype(np.int32))
        for _ in range(count)
    ]
