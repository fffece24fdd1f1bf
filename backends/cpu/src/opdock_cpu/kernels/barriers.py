"""Barriers, in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, dtypes, errors
from opdock_cpu.barriers import Barrier
from opdock_cpu.queues import Wait, texts

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


@table.binder("Barrier", keeps=())
def barrier(sig: NodeSig) -> Callable[[], Barrier]:
    """The barrier of a node: its own, or the one that it shares by name."""
    resources, name = sig.resources, sig.attrs["shared_name"] or sig.name
    types = [t.base_dtype for t in sig.attrs["component_types"]]
    shapes = [s.as_tuple() if hasattr(s, "as_tuple") else s for s in sig.attrs["shapes"]]
    if len(shapes) != len(types):
        raise _invalid(f"All of the component shapes must be specified: barrier '{sig.name}'")
    if sig.attrs["capacity"] != -1:
        raise _invalid(
            f"Barrier '{sig.name}' only accepts capacity=-1, not {sig.attrs['capacity']}: feed it "
            "through a queue to enforce a limited capacity"
        )
    container = sig.attrs["container"]
    assert resources is not None

    def run() -> Barrier:
        found: Barrier = resources.get_or_create(
            "barrier", container, name, lambda: Barrier(container, name, types, shapes)
        )
        _check_same("types", name, [t.name for t in found.types], [t.name for t in types])
        _check_same("shapes", name, texts(found.shapes), texts(shapes))
        return found

    return run


def _check_same(what: str, name: str, have: list[str], want: list[str]) -> None:
    if have != want:
        raise _invalid(
            f"Shared barrier '{name}' has component {what} {', '.join(have)} but requested "
            f"component {what} were {', '.join(want)}"
        )


def _use(sig: NodeSig, work: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that does something with the barrier behind its first argument."""
    assert sig.resources is not None
    wait = sig.resources.wait

    def run(handle: Any, *arguments: Any) -> Any:
        if not isinstance(handle, Barrier):
            raise _invalid(f"{sig.op} '{sig.name}': the handle is not one of a barrier")
        return work(handle, wait, *arguments)

    return run


def _check_types(sig: NodeSig, given: list[Any], wanted: list[Any]) -> None:
    mine = [t.base_dtype for t in given]
    if mine != list(wanted):
        raise _invalid(
            f"{sig.op} '{sig.name}': expected components of "
            f"{', '.join(t.name for t in wanted)}, got {', '.join(t.name for t in mine)}"
        )


@table.binder("BarrierInsertMany")
def insert_many(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Gives a component to keys."""
    component, dtype = int(sig.attrs["component_index"]), sig.attrs["T"]

    def work(found: Barrier, wait: Wait, keys: Array, values: Array) -> tuple[()]:
        if 0 <= component < len(found.types):
            _check_types(sig, [dtype], [found.types[component]])
        names = [k.encode() if isinstance(k, str) else bytes(k) for k in np.ravel(keys)]
        found.insert(component, names, np.asarray(values, dtype.np), wait)
        return ()

    return _use(sig, work)


@table.binder("BarrierTakeMany")
def take_many(sig: NodeSig) -> Callable[..., Any]:
    """Takes what is complete."""
    if sig.attrs["timeout_ms"] != -1:
        raise _invalid("Timeout not supported yet.")
    small, types = bool(sig.attrs["allow_small_batch"]), sig.attrs["component_types"]

    def work(found: Barrier, wait: Wait, count: Any) -> Any:
        _check_types(sig, types, list(found.types))
        if np.ndim(count):
            raise _invalid(f"num_elements must be a scalar, got shape {list(np.shape(count))}")
        return found.take(int(count), small, wait)

    return _use(sig, work)


@table.binder("BarrierClose")
def close(sig: NodeSig) -> Callable[..., tuple[()]]:
    """Ends a barrier."""
    cancels = bool(sig.attrs["cancel_pending_enqueues"])

    def work(found: Barrier, wait: Wait) -> tuple[()]:
        found.end(cancels, wait)
        return ()

    return _use(sig, work)


@table.binder("BarrierReadySize")
def ready_size(sig: NodeSig) -> Callable[..., Any]:
    """How many tuples are complete."""
    return _use(sig, lambda found, wait: np.asarray(found.ready, dtypes.int32.np))


@table.binder("BarrierIncompleteSize")
def incomplete_size(sig: NodeSig) -> Callable[..., Any]:
    """How many tuples lack components."""
    return _use(sig, lambda found, wait: np.asarray(found.incomplete, dtypes.int32.np))
