"""Level L6, run-time fallback: kernels that decline or run out of memory on demand.

The suite adds a kernel of its own to the device.  It admits only nodes that carry a private
attribute, so nothing else ever meets it, and it is nobody's claim.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import errors
from opdock.devices.pool import DevicePool
from opdock.graph.nodes import registry
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel
from opdock.plugins.manager import get_manager
from opdock.testing.harness.build import build_case
from opdock.testing.harness.case import Failure, Skip, check
from opdock.testing.harness.claims import OWN_PLUGIN, numpy_dtype, possible_dtypes, varied_attr
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.sample import samples_for
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config, without

__all__ = ["FALLBACK_TESTS"]

Array = npt.NDArray[Any]

_ATTR = "_conformance"
_OP = "AddV2"
# Fusion would take the op away from the kernel that is to decline.
_FUSION = ("fuse", "cluster", "segments")


def _floats(*values: float) -> Array:
    return np.array(values, np.float32)


@contextlib.contextmanager
def _told() -> Iterator[list[str]]:
    """What the run-time fallback logs inside the block, kept from the terminal."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("opdock.fallback"), Keep()
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


class _Trap:
    """A kernel that raises when it runs, and counts how often it did."""

    def __init__(self, dut: DeviceUnderTest, error: type[errors.OpError]) -> None:
        self.calls = 0
        self.tag = f"{error.__name__}-{id(self)}"
        self._error = error
        dut.kernels.add(
            [Kernel(op=_OP, bind=self._bind, when=self._when, priority=1_000_000)], OWN_PLUGIN
        )

    def _when(self, sig: NodeSig) -> bool | str:
        return sig.attrs.get(_ATTR) == self.tag or "it serves a conformance test only"

    def _bind(self, sig: NodeSig) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            self.calls += 1
            raise self._error(None, None, "gave up on demand")

        return run

    def node(self, x: Any, y: Any) -> Any:
        """An addition that meets the trap."""
        return registry.get(_OP)(x, y, name="trapped", **{_ATTR: self.tag})


def _run_time_decline(dut: DeviceUnderTest) -> None:
    """The op moves, the step goes on with no state lost, and the decision is kept and told."""
    trap = _Trap(dut, errors.UnimplementedError)
    graph, x, y, count = _graph(dut, trap)
    data = _floats(1, 2, 3)
    config = session_config(soft=True, optimize=True)
    with without(_FUSION), _told() as told, tf.Session(graph=graph, config=config) as session:
        session.run(count.initializer)
        for run in range(1, 4):
            got = session.run(y, {x: data})
            check(np.allclose(got, data * 2 + 1), f"run {run} gave {got}")
            check(session.run(count) == run, "an op before the declining one ran again")
        moves = [str(m) for m in session.explain(y, {x: data}).moves]
    check(trap.calls == 1, f"the declining kernel was called {trap.calls} times in three runs")
    check(any("gave up on demand" in m for m in moves), f"explain does not tell: {moves}")
    check(len(told) == 1, f"the move was logged {len(told)} times in three runs: {told}")


def _decline_without_soft_placement(dut: DeviceUnderTest) -> None:
    """Without soft placement the kernel's error reaches the user and names the op."""
    trap = _Trap(dut, errors.UnimplementedError)
    graph, x, y, count = _graph(dut, trap)
    config = session_config(soft=False, optimize=True)
    with without(_FUSION), tf.Session(graph=graph, config=config) as session:
        session.run(count.initializer)
        try:
            session.run(y, {x: _floats(1, 2, 3)})
        except errors.UnimplementedError as error:
            text = str(error)
            check("gave up on demand" in text, f"the kernel's words are lost: {text}")
            check("trapped" in text, f"the error does not name the op: {text}")
            return
    raise Failure("nothing was raised")


def _out_of_memory(dut: DeviceUnderTest) -> None:
    """Out of memory moves the op to another device, or says that there is none."""
    trap = _Trap(dut, errors.ResourceExhaustedError)
    graph, x, y, count = _graph(dut, trap)
    data = _floats(1, 2, 3)
    others = [
        d for d in DevicePool.build(get_manager().devices())
        if d.automatic and d.name != dut.name
    ]  # fmt: skip
    config = session_config(soft=True, optimize=True)
    with without(_FUSION), _told(), tf.Session(graph=graph, config=config) as session:
        session.run(count.initializer)
        try:
            got = session.run(y, {x: data})
        except errors.ResourceExhaustedError as error:
            check("trapped" in str(error), f"the error does not name the op: {error}")
            if others:
                raise Skip("unsupported", "no other device has a kernel for it") from None
            return
        check(np.allclose(got, data * 2 + 1), f"the values are wrong: {got}")
        moves = [str(m) for m in session.explain(y, {x: data}).moves]
        check(any("gave up on demand" in m for m in moves), f"explain does not tell: {moves}")


def _graph(dut: DeviceUnderTest, trap: _Trap) -> tuple[Any, Any, Any, Any]:
    """A counter of the host's, then the trapped op, then an ordinary one."""
    with tf.Graph().as_default() as graph:
        with tf.device("/device:CPU:0"):  # the device need not have kernels that count
            count = tf.Variable(0, trainable=False, name="count")
            counted = tf.assign_add(count, 1)
        with tf.device(dut.scope), tf.control_dependencies([counted]):
            x = tf.placeholder(tf.float32, [3])
            y = trap.node(x, x) + 1.0
    return graph, x, y, count


def _missing_kernel(dut: DeviceUnderTest) -> None:
    """Without soft placement an op without a kernel is refused, with the reasons."""
    for spec in registry.all_ops():
        dtype = next(iter(sorted(possible_dtypes(spec), key=lambda d: d.name)), None)
        if dtype is None or dut.kernels.entries(spec.name) or spec.decomposition_fn is not None:
            continue
        sample = next(iter(samples_for(spec.name, numpy_dtype(dtype.name))), None)
        if sample is None:
            continue
        with tf.Graph().as_default() as graph:
            case = build_case(
                spec, sample.inputs, sample.attrs, attr=varied_attr(spec), dtype=dtype,
                variant="plain", scope=dut.scope, name="missing",
            )  # fmt: skip
            if case.variables or not case.outputs:
                continue
            config = session_config(soft=False, optimize=False)
            with tf.Session(graph=graph, config=config) as session:
                try:
                    session.run(case.outputs, case.feeds)
                except errors.InvalidArgumentError as error:
                    text = str(error)
                    check(spec.name in text, f"the error does not name the op: {text[:200]}")
                    check(
                        dut.pool.own_type in text,
                        f"the error does not name the device: {text[:200]}",
                    )
                    return
    raise Skip("unsupported", "the device has a kernel for every op that has samples")


FALLBACK_TESTS: dict[str, Callable[[DeviceUnderTest], None]] = {
    "run-time-decline": _run_time_decline,
    "decline-without-soft-placement": _decline_without_soft_placement,
    "out-of-memory-moves": _out_of_memory,
    "missing-kernel": _missing_kernel,
}
"""Name -> test."""
