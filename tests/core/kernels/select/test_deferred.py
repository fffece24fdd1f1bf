"""Tables that are loaded when one of their ops is asked for."""

from __future__ import annotations

import threading

import pytest

from opdock.kernels.select.deferred import DeferredTable
from opdock.kernels.select.selection import KernelIndex
from opdock.kernels.select.table import Kernel, KernelTable


def table(*ops: str) -> KernelTable:
    return KernelTable(Kernel(op=op, bind=lambda sig: None) for op in ops)


class Loads:
    """Gives a table, and counts how often it is asked to."""

    def __init__(self, *ops: str) -> None:
        self.count = 0
        self._ops = ops

    def __call__(self) -> KernelTable:
        self.count += 1
        return table(*self._ops)


def test_it_is_loaded_once_when_one_of_its_ops_is_asked_for():
    load = Loads("Add", "Sub")
    deferred = DeferredTable("made:table", ["Add", "Sub"], load)
    assert deferred.ops() == ["Add", "Sub"]
    assert deferred.for_op("Mul") == ()
    assert load.count == 0
    assert deferred.for_op("Add") == deferred.for_op("Add") != ()
    assert [k.op for k in deferred] == ["Add", "Sub"]
    assert load.count == 1


def test_kernels_for_ops_that_are_not_declared_are_an_error():
    deferred = DeferredTable("made:table", ["Add"], Loads("Add", "Mul"))
    with pytest.raises(ValueError, match="'made:table' has kernels for Mul, which it is not decla"):
        deferred.for_op("Add")


def test_one_that_was_interrupted_is_loaded_again():
    answers = iter([KeyboardInterrupt, table("Add")])

    def load() -> KernelTable:
        answer = next(answers)
        if answer is KeyboardInterrupt:
            raise KeyboardInterrupt
        return answer

    deferred = DeferredTable("made:table", ["Add"], load)
    with pytest.raises(KeyboardInterrupt):
        deferred.for_op("Add")
    assert len(deferred.for_op("Add")) == 1


def test_threads_that_come_at_once_get_the_same_records():
    begun = threading.Event()

    def load() -> KernelTable:
        begun.set()
        return table("Add")

    deferred = DeferredTable("made:table", ["Add"], load)
    found: list[tuple[Kernel, ...]] = []

    def ask() -> None:
        found.append(deferred.for_op("Add"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun.is_set()
    assert len(found) == 8 and len({id(kernels[0]) for kernels in found}) == 1


def test_an_index_asks_no_more_tables_than_the_op_needs():
    sums, products = Loads("Add"), Loads("Mul")
    index = KernelIndex()
    index.add(DeferredTable("sums:table", ["Add"], sums), "a")
    index.add(DeferredTable("products:table", ["Mul"], products), "a")
    assert [e.kernel.op for e in index.entries("Add")] == ["Add"]
    assert (sums.count, products.count) == (1, 0)
    assert index.ties() == []  # they are of one plugin, which need not be looked at
    assert products.count == 0
    assert index.ops() == ["Add", "Mul"] and len(index) == 2
    assert (sums.count, products.count) == (1, 1)


def test_ties_are_looked_for_among_the_ops_that_plugins_share():
    shared, own = Loads("Add"), Loads("Mul")
    index = KernelIndex()
    index.add(DeferredTable("one:table", ["Add"], shared), "one")
    index.add(DeferredTable("own:table", ["Mul"], own), "one")
    index.add(table("Add"), "two")
    assert [tie.op for tie in index.ties()] == ["Add"]
    assert own.count == 0
