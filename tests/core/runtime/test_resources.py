"""What a session keeps between steps."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import opdock as tf
from opdock.devices.segment import Loan
from opdock.runtime import resources
from opdock.runtime.resources import Cell, CellProxy, ResourceManager, Store, View
from tests.threads import WAIT


def test_a_cell():
    cell = Cell("v", tf.float32)
    assert not cell.initialized
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
        cell.read()
    cell.write(np.ones(2))
    assert cell.initialized
    assert cell.read().sum() == 2
    cell.clear()
    assert not cell.initialized
    resource = Cell("r", tf.float32, resource=True)
    with pytest.raises(tf.errors.NotFoundError, match="Resource localhost/r/N10tensorflow3VarE"):
        resource.read()


def test_a_proxy_copies_both_ways():
    cell = Cell("v", tf.float32)
    proxy = CellProxy(cell, lambda b: ("here", b), lambda b: b[1])
    assert not proxy.initialized
    proxy.write(("here", 5))
    assert cell.read() == 5
    assert proxy.read() == ("here", 5)
    assert proxy.home is cell
    assert proxy.name == "v"
    assert proxy.lock is cell.lock
    proxy.clear()
    assert not cell.initialized


def test_names_and_containers():
    store = Store()
    manager = ResourceManager(store)
    a = manager.cell("", "v", tf.float32)
    assert manager.cell("localhost", "v", tf.float32) is a
    assert manager.cell("other", "v", tf.float32) is not a
    assert manager.get("variable", "", "v") is a
    assert manager.get("queue", "", "v") is None
    assert len(manager.items("variable")) == 2
    assert store.clear(["other"])
    assert not store.clear(["other"])
    assert manager.named("variable") == {("localhost", "v"): a}
    assert ResourceManager(store).get("variable", "", "v") is a
    assert manager.delete("variable", "", "v")
    assert not manager.delete("variable", "", "v")


def test_things_are_made_once_and_closed():
    closed = []

    class Queue:
        def close(self):
            closed.append(self)

    manager = ResourceManager()
    queue = manager.get_or_create("queue", "", "q", Queue)
    assert manager.get_or_create("queue", "", "q", Queue) is queue
    state = manager.node_state("n", list)
    assert manager.node_state("n", list) is state
    manager.close()
    assert manager.cancellation.cancelled
    assert closed == [queue]
    assert manager.node_state("n", list) is not state


def test_containers_of_a_graph_keep_variables_apart():
    with tf.container("a"):
        a = tf.Variable(1.0, name="v")
    b = tf.Variable(2.0, name="w")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([a, b]) == [1, 2]


def test_variables_of_one_shared_name_are_one():
    a = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32, shared_name="common")
    b = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32, shared_name="common")
    with tf.Session() as session:
        session.run(tf.assign(a, 4.0))
        assert session.run(b) == 4


def _own(value, alone):
    return value if alone else value.copy()


def test_a_value_that_nobody_else_holds_changes_where_it_is():
    cell = Cell("v", tf.float32)
    cell.write(np.zeros(3))
    at = id(cell.read())
    cell.change(_own, lambda value: value.__setitem__(1, 5))
    assert id(cell.read()) == at
    held, box = cell.read(), cell.box
    cell.change(_own, lambda value: value.__setitem__(1, 7))
    assert held.tolist() == [0, 5, 0]
    assert cell.read().tolist() == [0, 7, 0]
    assert cell.box is not box


def test_who_reads_while_a_value_changes_waits():
    cell = Cell("v", tf.float32)
    cell.write(np.zeros(2))
    found, began = [], threading.Event()

    def read():
        began.set()
        found.append(cell.read().tolist())

    reader = threading.Thread(target=read)

    def write(value):
        value[0] = 1
        assert cell.initialized
        reader.start()
        assert began.wait(WAIT)
        value[1] = 1

    cell.change(_own, write)
    reader.join()
    assert found == [[1, 1]]


def test_a_change_that_fails_or_comes_too_late_is_none():
    cell = Cell("v", tf.float32)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
        cell.change(_own, lambda value: None)
    cell.write(np.zeros(2))

    def fail(value):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cell.change(_own, fail)
    assert cell.read().tolist() == [0, 0]
    cell.change(_own, lambda value: cell.write(np.ones(2)))
    assert cell.read().tolist() == [1, 1]


def test_a_proxy_changes_a_copy():
    cell, home = Cell("v", tf.float32), np.zeros(2)
    cell.write(home)
    proxy = CellProxy(cell, np.asarray, np.asarray)
    proxy.change(_own, lambda value: value.__setitem__(0, 1))
    assert home.tolist() == [0, 0]
    assert cell.read().tolist() == [1, 0]


def _viewed(count=2):
    cells = [Cell(f"v{i}", tf.float32) for i in range(count)]
    for i, cell in enumerate(cells):
        cell.write(np.full(2, i, np.float32))
    view = View()
    found = view.look(cells)
    assert view.values is found
    return cells, view


@pytest.mark.parametrize(
    "write",
    [
        lambda cells: cells[1].write(np.zeros(2)),
        lambda cells: Cell.write_all(cells[:1], [np.zeros(2)]),
        lambda cells: cells[0].change(_own, lambda value: value.__setitem__(0, 5)),
        lambda cells: cells[0].clear(),
        lambda cells: cells[0].lose("its device was lost"),
        lambda cells: Cell("another", tf.float32).write(np.zeros(2)),
        lambda cells: resources.replace(cells[:1], [np.zeros(2)], [cells[0].box]),
    ],
)
def test_a_view_is_kept_until_a_variable_is_written(write):
    cells, view = _viewed()
    again = View()
    again.look(cells)
    write(cells)
    assert view.values is None
    assert again.values is None
    assert [x is cell.box[0] for x, cell in zip(view.look(cells), cells, strict=True)] == [True] * 2


def test_a_view_keeps_nobody_from_writing_where_a_value_is():
    (cell, _), view = _viewed()
    at = id(cell.read())
    cell.change(_own, lambda value: value.__setitem__(1, 5))
    assert id(cell.read()) == at
    held = view.look([cell])
    cell.change(_own, lambda value: value.__setitem__(1, 7))
    assert held[0].tolist() == [0, 5]
    assert cell.read().tolist() == [0, 7]


def test_a_view_has_no_value_that_is_missing_or_lent():
    (cell, other), view = _viewed()
    cell.clear()
    assert view.look([cell, other])[0] is None
    assert view.values is None
    cell.write(Loan(np.zeros(1), np.copy, None))
    assert type(view.look([cell, other])[0]) is Loan
    assert view.values is None
    value = cell.read()
    assert view.look([cell, other])[0] is value
    assert view.values is not None


def test_a_view_that_is_gone_leaves_nothing():
    gc.collect()
    before = len(resources._views)
    cells, view = _viewed()
    value = weakref.ref(cells[0].box[0])
    assert len(resources._views) == 1
    del cells, view
    assert value() is None
    assert len(resources._views) <= before
