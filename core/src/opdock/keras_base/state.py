"""Keras' session, its learning phase, and variables that are initialized when they are used."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant import constant as graph_constant
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph, reset_default_graph
from opdock.graph.nodes.scopes import init_scope, name_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import global_variables, variables_initializer
from opdock.keras_base.settings import floatx
from opdock.ops.identity import placeholder as graph_placeholder
from opdock.ops.identity import placeholder_with_default, sparse_placeholder
from opdock.ops.state import is_variable_initialized
from opdock.runtime.session import Session

__all__ = [
    "batch_get_value", "batch_set_value", "clear_session", "constant", "get_graph", "get_session",
    "get_uid", "get_value", "learning_phase", "learning_phase_scope",
    "manual_variable_initialization", "placeholder", "reset_uids", "set_learning_phase",
    "set_session", "set_value", "variable",
]  # fmt: skip

_local = threading.local()
_by_hand = False
_phases: weakref.WeakKeyDictionary[Graph, Any] = weakref.WeakKeyDictionary()
_uids: weakref.WeakKeyDictionary[Graph, Counter[str]] = weakref.WeakKeyDictionary()
_setters: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()


# ---------------------------------------------------------------- graph and session
def get_graph() -> Graph:
    """The graph in which layers are made: the default one."""
    return get_default_graph()


def get_session(op_input_list: Any = ()) -> Any:
    """The default session, else Keras' own for the default graph; its variables have values.

    Args:
        op_input_list: not used: a program has one graph here.
    """
    session = get_default_session()
    if session is None:
        session = getattr(_local, "session", None)
        if session is None or session.graph is not get_default_graph():
            session = _local.session = Session()
    if not _by_hand:
        with session.graph.as_default():
            _initialize(session)
    return session


def set_session(session: Any) -> None:
    """Makes a session Keras' own, in this thread."""
    _local.session = session


def clear_session() -> None:
    """Forgets the session, the names that were given and the default graph."""
    reset_default_graph()
    reset_uids()
    _local.session = None
    _phases.clear()
    learning_phase()


def manual_variable_initialization(value: bool) -> None:
    """Whether programs initialize variables themselves."""
    global _by_hand
    _by_hand = value


def _initialize(session: Any) -> None:
    """Gives initial values to variables that Keras has not seen yet and that have none."""
    new = [v for v in global_variables() if not getattr(v, "_keras_initialized", False)]
    if not new:
        return
    done = session.run([is_variable_initialized(v) for v in new])
    missing = [v for v, there in zip(new, done, strict=True) if not there]
    for v in new:
        v._keras_initialized = True
    if missing:
        session.run(variables_initializer(missing))


# ---------------------------------------------------------------- names and the phase
def get_uid(prefix: str = "") -> int:
    """How often a prefix has been asked for in this graph, this time included."""
    counts = _uids.setdefault(get_default_graph(), Counter())
    counts[prefix] += 1
    return counts[prefix]


def reset_uids() -> None:
    """Begins to count anew."""
    _uids.clear()


def learning_phase() -> Any:
    """0 in tests and 1 in training: a number that was set, or a tensor that is false by default."""
    with init_scope():
        graph = get_default_graph()
        if graph not in _phases:
            with name_scope(""):
                _phases[graph] = placeholder_with_default(False, [], name="keras_learning_phase")
        return _phases[graph]


def set_learning_phase(value: int) -> None:
    """Sets it for this graph.

    Raises:
        ValueError: it is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    with init_scope():
        _phases[get_default_graph()] = value


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """A context in which the phase is this one.

    Raises:
        ValueError: it is neither 0 nor 1.
    """
    graph = get_default_graph()
    before = _phases.get(graph)
    set_learning_phase(value)
    try:
        yield
    finally:
        if before is None:
            _phases.pop(graph, None)
        else:
            _phases[graph] = before


# ---------------------------------------------------------------- tensors and variables
def placeholder(
    shape: Any = None, ndim: int | None = None, dtype: Any = None, sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A tensor to feed, of a shape or at least of a number of dimensions."""
    if shape is None and ndim:
        shape = (None,) * ndim
    kind = dtypes.as_dtype(dtype or floatx())
    if sparse:
        return sparse_placeholder(kind, shape=shape, name=name)
    return graph_placeholder(kind, shape=shape, name=name)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant, of the default type of numbers if no other is given."""
    return graph_constant(value, dtype=dtype or floatx(), shape=shape, name=name or "Const")


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable, of the default type of numbers if no other is given."""
    found: Any = Variable(
        value, dtype=dtypes.as_dtype(dtype or floatx()), name=name, constraint=constraint,
        use_resource=True,
    )  # fmt: skip
    found._uses_learning_phase = False
    return found


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    return x.eval(session=get_session((x,)))


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of variables, in one step."""
    if not tensors:
        return []
    values: list[Any] = get_session(tensors).run(list(tensors))
    return values


def set_value(x: Any, value: Any) -> None:
    """Gives a variable a value."""
    batch_set_value([(x, value)])


def batch_set_value(tuples: Iterable[tuple[Any, Any]]) -> None:
    """Gives variables values, in one step."""
    feeds, steps = {}, []
    for x, value in tuples:
        array = np.asarray(value, dtype=x.dtype.base_dtype.as_numpy_dtype)
        if x not in _setters:  # one for each variable, however often it is set
            holder = graph_placeholder(x.dtype.base_dtype, shape=(None,) * array.ndim)
            _setters[x] = (holder, x.assign(holder))
        holder, step = _setters[x]
        feeds[holder] = array
        steps.append(step.op if hasattr(step, "op") else step)
    if steps:
        get_session().run(steps, feed_dict=feeds)
