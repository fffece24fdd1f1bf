"""Level L6: what a session does around the kernels - placement, copies, threads, traces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.devices.pool import DevicePool
from opdock.graph.nodes import registry
from opdock.plugins.manager import get_manager
from opdock.testing.harness.case import Failure, Skip, Unit, check, single
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.tolerances import Tolerance, compare
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config, without
from opdock.testing.reference.random import Stream, uniforms

__all__ = ["runtime_units"]

Array = npt.NDArray[Any]
Test = Callable[[DeviceUnderTest], None]

_SINCE = (1, 0)


def runtime_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per test."""
    from opdock.testing.levels.fallback import FALLBACK_TESTS

    for name, test in {**_TESTS, **FALLBACK_TESTS}.items():
        if not only or name in only:
            yield single("L6", name, lambda test=test: test(dut), _SINCE)  # type: ignore[misc]


def _session(graph: Any, soft: bool = True) -> Any:
    return tf.Session(graph=graph, config=session_config(soft=soft, optimize=True))


def _floats(*values: float) -> Array:
    return np.array(values, np.float32)


def _equal(got: Any, wanted: Any, what: str) -> None:
    mismatch = compare(got, np.asarray(wanted, np.float32), Tolerance(1e-5, 1e-5), what)
    if mismatch is not None:
        raise Failure(mismatch.text)


# ---------------------------------------------------------------- placement
def _device_names(dut: DeviceUnderTest) -> None:
    """Every spelling of the device's name means the device."""
    pool = dut.pool
    short = f"/device:{pool.device_type}:{pool.index}"
    spellings = dict.fromkeys([dut.name, dut.scope, short, *pool.aliases])
    for spelling in spellings:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [3])
            with tf.device(spelling):
                y = tf.add(x, x, name="y")
            with _session(graph) as session:
                data = np.ones(3, np.float32)
                rows = session.explain(y, {x: data}).rows
                _equal(session.run(y, {x: data}), [2, 2, 2], f"add under {spelling}")
        row = next(r for r in rows if r.node == "y" or r.node.startswith("y/"))
        asked = row.device == dut.name or bool(row.rejections)
        check(asked, f"{spelling} means {row.device} and nothing says why: {row.why}")


def _absent_device(dut: DeviceUnderTest) -> None:
    """A device that does not exist: an error, or with soft placement another device."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        with tf.device(f"/device:{dut.pool.own_type}:9999"):
            y = x + x
        data = _floats(1, 2)
        with _session(graph, soft=False) as session:
            try:
                session.run(y, {x: data})
            except errors.InvalidArgumentError as error:
                check("9999" in str(error), f"the error does not name the device: {error}")
            else:
                check(False, "an op on a device that does not exist ran without soft placement")
        with _session(graph) as session:
            _equal(session.run(y, {x: data}), [2, 4], "with soft placement")


def _foreign_type(dut: DeviceUnderTest) -> None:
    """With soft placement values of a type that the device cannot hold live elsewhere."""
    if dut.dtypes is None:
        raise Skip("unsupported", "the device holds every type")
    spec = registry.find("AddV2")
    assert spec is not None
    addable = dtypes.REALS & frozenset(spec.definition.attrs["T"].allowed or ())
    foreign = sorted(addable - dut.dtypes, key=lambda d: d.name)
    if not foreign:
        raise Skip("unsupported", "the device holds every real type that can be added")
    _other_device(dut)
    for dtype in foreign:
        with tf.Graph().as_default() as graph, tf.device(dut.scope):
            fed = tf.placeholder(dtype, [2])
            held = tf.identity(tf.constant([1, 2], dtype))
            total, cast = tf.cast(fed + held, tf.float32), tf.cast(held, tf.float32)
            for optimize in (True, False):
                config = session_config(soft=True, optimize=optimize)
                with tf.Session(graph=graph, config=config) as session:
                    data = np.array([3, 4]).astype(dtype.np)
                    got, constant = session.run([total, cast], {fed: data})
                    _equal(got, [4, 6], f"a sum in {dtype.name}")
                    _equal(constant, [1, 2], f"a constant in {dtype.name}")


def _list_devices(dut: DeviceUnderTest) -> None:
    """`Session.list_devices` has the device with its type."""
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
        with _session(graph) as session:
            found = [d for d in session.list_devices() if d.name == dut.name]
    check(len(found) == 1, f"list_devices has {len(found)} entries for {dut.name}")
    check(found[0].device_type in dut.name, f"its type is {found[0].device_type}")


# ---------------------------------------------------------------- copies
def _copies(dut: DeviceUnderTest) -> None:
    """Values survive the way to another device and back, in every type that both can hold."""
    other = _other_device(dut)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3])
        n = tf.placeholder(tf.int32, [None])
        with tf.device(dut.scope):
            here, n_here = x * 2.0, n + 1
        with tf.device(other):
            there, n_there = here + 1.0, n_here * 2
        with tf.device(dut.scope):
            back, n_back = there * there, n_there - 1
        with _session(graph) as session:
            for rows in (4, 0, 1000):
                data = np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
                whole = np.arange(rows, dtype=np.int32)
                got, n_got = session.run([back, n_back], {x: data, n: whole})
                _equal(got, (data * 2 + 1) ** 2, f"{rows} rows there and back")
                check(np.array_equal(n_got, (whole + 1) * 2 - 1), "integers there and back")


def _other_device(dut: DeviceUnderTest) -> str:
    """A second device that placement may use, by full name."""
    for device in DevicePool.build(get_manager().devices()):
        if device.name != dut.name and device.automatic:
            return device.name
    raise Skip("unsupported", "there is no second device on this machine")


# ---------------------------------------------------------------- threads
def _concurrent_runs(dut: DeviceUnderTest) -> None:
    """Threads that share a session get their own answers."""
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.reduce_sum(tf.matmul(x, x, transpose_b=True) + 1.0)
        total = tf.Variable(0.0, trainable=False)
        bump = tf.assign_add(total, 1.0, use_locking=True)
        problems: list[str] = []
        with _session(graph) as session:
            session.run(tf.global_variables_initializer())

            def work(seed: int) -> None:
                try:
                    for i in range(15):
                        data = np.full((1 + i % 3, 4), 1 + seed, np.float32)
                        got, _ = session.run([y, bump], {x: data})
                        wanted = (data @ data.T + 1.0).sum()
                        if not np.isclose(got, wanted, rtol=1e-4):
                            problems.append(f"thread {seed}, run {i}: {got}, expected {wanted}")
                except Exception as error:
                    problems.append(f"thread {seed}: {type(error).__name__}: {error}")

            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            check(not problems, "; ".join(problems[:3]))
            _equal(session.run(total), 60.0, "a locked counter after 4 x 15 runs")


def _sessions_side_by_side(dut: DeviceUnderTest) -> None:
    """Closing one session leaves the device to the others."""
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        x = tf.placeholder(tf.float32, [2])
        y = x * 3.0
        first, second = _session(graph), _session(graph)
        data = _floats(1, 2)
        _equal(first.run(y, {x: data}), [3, 6], "the first session")
        first.close()
        _equal(second.run(y, {x: data}), [3, 6], "the second session")
        try:
            first.run(y, {x: data})
        except RuntimeError:
            pass
        else:
            check(False, "a closed session runs")
        second.close()


# ---------------------------------------------------------------- tracing and randomness
def _tracing(dut: DeviceUnderTest) -> None:
    """A full trace names the device and the ops that ran there, with times that make sense."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [8, 8])
        with tf.device(dut.scope):
            y = tf.add(x, x, name="traced")
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        metadata = tf.RunMetadata()
        data = np.ones((8, 8), np.float32)
        with without(["segments"]), _session(graph) as session:
            row = next(r for r in session.explain(y, {x: data}).rows if r.node == "traced")
            session.run(y, {x: data}, options=options, run_metadata=metadata)
    stats = {
        d.device: {n.node_name: n for n in d.node_stats} for d in metadata.step_stats.dev_stats
    }
    check(row.device in stats, f"step_stats has {sorted(stats)}, not {row.device}")
    check("traced" in stats[row.device], f"no node stats of the op: {sorted(stats[row.device])}")
    node = stats[row.device]["traced"]
    check(node.all_start_micros > 0, f"it starts at {node.all_start_micros}")
    check(node.all_end_rel_micros >= node.op_start_rel_micros >= 0, f"odd times: {node}")
    names = [n.name for g in metadata.partition_graphs for n in g.node]
    check("traced" in names, f"the partition graphs hold {names}")


def _random_state(dut: DeviceUnderTest) -> None:
    """A second run goes on in the stream, a new session starts again; both have TF's bits."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(4321)
        with tf.device(dut.scope):
            y = tf.random_uniform([7], seed=7)
        with _session(graph) as session:
            first, second = session.run(y), session.run(y)
        with _session(graph) as session:
            again = session.run(y)
    check(np.array_equal(first, again), "a new session does not repeat the first")
    for run, got in enumerate((first, second)):
        # Each run sets 256 blocks per element aside.
        stream = uniforms(Stream(4321, (7 << 64) + run * 7 * 256), np.dtype(np.float32))
        wanted = np.array([next(stream) for _ in range(7)], np.float32)
        _equal(got, wanted, f"run {run + 1}")


def _segments(dut: DeviceUnderTest) -> None:
    """What the backend compiles as a whole is the same step as op by op."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(4321)
        with tf.device(dut.scope):
            x = tf.placeholder(tf.float32, [2, 2])
            v = tf.get_variable("kept", initializer=np.ones((2, 2), np.float32))
            drawn = tf.random_uniform([2, 2], seed=7)
            _, y = tf.while_loop(
                lambda i, _: i < 3, lambda i, y: (i + 1, tf.matmul(y, x) * 0.5), [0, v + drawn]
            )
            with tf.control_dependencies([y]):
                fetch = [y, v.assign_add(y)]
    data = np.array([[1.0, 0.5], [-0.5, 1.0]], np.float32)

    def steps() -> tuple[Any, list[Array]]:
        with _session(graph) as session:
            session.run(v.initializer)
            got = [value for _ in range(3) for value in session.run(fetch, {x: data})]
            return session.explain(fetch, {x: data}), got

    explained, got = steps()
    with without(["segments"]):
        _, wanted = steps()
    if not explained.segments:
        why = sorted({m for r in explained.rows for m in r.missed if "segment" in m})
        raise Skip("unsupported", why[0] if why else "the backend compiles no segments")
    for a, b in zip(got, wanted, strict=True):
        _equal(a, b, "compiled as a whole")


_TESTS: dict[str, Test] = {
    "device-names": _device_names,
    "absent-device": _absent_device,
    "foreign-type": _foreign_type,
    "list-devices": _list_devices,
    "copies": _copies,
    "concurrent-runs": _concurrent_runs,
    "sessions-side-by-side": _sessions_side_by_side,
    "tracing": _tracing,
    "random-state": _random_state,
    "segments": _segments,
}
