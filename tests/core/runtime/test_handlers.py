"""A signal handler that runs steps, wherever in a step of the main thread it comes."""

from __future__ import annotations

import dis
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.kernels.data.base import Dataset, DatasetIterator, Element
from opdock.kernels.data.context import Context
from opdock.kernels.data.iterators import IteratorResource
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.resources import Cell, ResourceManager, View
from opdock.util.locks import Turn

_PROGRAM = Path(__file__).with_name("handled.py")


def _met(*points: object) -> int:
    """How many of the points there were, none of which disturbed anything."""
    done = subprocess.run(
        [sys.executable, _PROGRAM, *map(str, points)], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-6000:]
    return int(done.stdout.splitlines()[-1])


def test_one_may_come_while_the_main_thread_waits_for_an_import() -> None:
    assert _met("DeferredTable._loaded", "_Task.result") == 2


def test_one_may_come_at_some_calls_of_a_first_step() -> None:
    assert _met(50, 9_001, 30_011, "replace") == 4


@pytest.mark.prove
@pytest.mark.parametrize("first", range(11, 2_011, 250))
def test_one_may_come_at_many_calls(first: int) -> None:
    assert _met(*range(first, 40_000, 2_003)) > 10


class Numbers(Dataset):
    """Threes; while one is made, somebody is called."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__([tf.int64], [()])
        self.meanwhile = meanwhile

    def iterator(self, context: Context) -> DatasetIterator:
        return Threes(self.meanwhile)


class Threes(DatasetIterator):
    """See `Numbers`."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile

    def next(self) -> Element | None:
        self.meanwhile()
        return (np.asarray(3),)


def test_one_that_asks_an_iterator_in_the_middle_of_an_element_is_told() -> None:
    told = list[str]()

    def handler() -> None:
        for ask in (resource.next, lambda: resource.begin(Numbers(handler))):
            with pytest.raises(tf.errors.AbortedError) as caught:
                ask()
            told.append(caught.value.message)

    resource = IteratorResource("it", [tf.int64], [()], ResourceManager())
    resource.begin(Numbers(handler))
    assert resource.next() == (3,)
    assert len(told) == 2
    assert all("iterator it is used in this thread already" in message for message in told)


def test_a_turn_is_not_entered_again_and_can_be_left() -> None:
    turn = Turn("Something is done")
    for _ in range(2):
        with turn.taken(), pytest.raises(tf.errors.AbortedError, match="Something is done in"):
            turn.taken().__enter__()


def test_a_view_does_not_keep_what_was_replaced_while_it_looked() -> None:
    cell = Cell("v", tf.float32)
    cell.write(np.zeros(2, np.float32))
    new = np.ones(2, np.float32)

    class Meddling(list[Cell]):
        """Cells among which somebody writes, when all have been read."""

        def __iter__(self):  # type: ignore[no-untyped-def]
            yield from super().__iter__()
            cell.write(new)

    view = View()
    assert view.look(Meddling([cell]))[0] is not new
    assert view.values is None
    assert view.look([cell])[0] is new
    assert view.values == (new,)


def test_a_change_that_is_interrupted_by_its_own_thread_can_be_read() -> None:
    cell = Cell("v", tf.float32)
    cell.write(np.zeros(4, np.float32))
    seen: list[np.ndarray] = []

    def write(buffer: np.ndarray) -> None:
        buffer[0] = 1
        seen.append(cell.read())
        buffer[1] = 1

    cell.change(lambda value, alone: value if alone else value.copy(), write)
    assert seen[0].tolist() == [1, 0, 0, 0]
    assert cell.read().tolist() == [1, 1, 0, 0]


def test_no_handler_comes_between_a_look_at_a_stream_and_its_next_place() -> None:
    """Python looks for signals after calls and where it jumps back, and there is neither."""
    code = [*dis.get_instructions(RandomStream.reserve)]
    at = [i for i, one in enumerate(code) if one.argval == "_next"]
    names = {one.opname for one in code[at[0] : at[-1] + 1]}
    assert len(at) == 2
    assert names >= {"STORE_ATTR", "BINARY_OP"}
    assert not any("CALL" in name or "BACKWARD" in name for name in names)
