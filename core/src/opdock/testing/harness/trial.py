"""A trial of a device's kernels on samples: does `when` answer, and does `bind` give a function?

Where the device has a compiler: does it answer for a sum? Nothing is computed. `opdock doctor
--open` runs it, and so names what would fail in somebody's program.
"""

from __future__ import annotations

from collections.abc import Iterator

from opdock import dtypes, errors
from opdock.compiler.clean.prune import prune
from opdock.compiler.place.ladder import node_sig
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.kernels.select.flaws import flaw
from opdock.kernels.select.selection import Entry, select
from opdock.kernels.select.siblings import sibling_hint
from opdock.kernels.select.signature import NodeSig
from opdock.plugins.manager import OpenDevice
from opdock.runtime.resources import ResourceManager
from opdock.testing.harness.build import build_case
from opdock.testing.harness.claims import numpy_dtype, possible_dtypes, varied_attr
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.sample import sample_sets_for

__all__ = ["faults", "unserved"]


def faults(opened: OpenDevice) -> list[str]:
    """What is wrong with an open device's kernels and compiler, a line each; core's are left out.

    Each line names op, kernel, plugin and device, or compiler, backend and device. Samples stand in
    for the nodes of programs, so a fault that shows only for other nodes is not found.
    """
    found: dict[str, None] = {}
    for entry in opened.kernels:
        if entry.kernel.is_portable:
            continue
        problem = flaw(entry.kernel)
        problems = [problem] if problem else _tried(opened, entry)
        found.update((f"{entry.kernel.op}: {entry} on {opened.name}: {p}", None) for p in problems)
    if opened.compiler is not None:
        found.update(dict.fromkeys(_compiled(opened)))
    return list(found)


def unserved(opened: OpenDevice) -> list[str]:
    """Ops without a kernel on a device that has one for a sibling, a line each."""
    native = {e.kernel.op for e in opened.kernels if not e.kernel.is_portable}
    ops = (s for s in registry.all_ops() if s.name not in opened.kernels)
    hints = ((s.name, sibling_hint(s.name, native)) for s in ops if s.decomposition_fn is None)
    return [f"{opened.name}: no kernel for {op}, but {hint}" for op, hint in hints if hint]


def _compiled(opened: OpenDevice) -> Iterator[str]:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device(f"/device:{opened.name}"):
            x = tf.placeholder(tf.float32, [2])
            total = x + x
        try:
            session.explain(total, {x: [0.0, 0.0]})
        except errors.InternalError as e:
            yield e.message.partition("\n")[0]
        except errors.OpError:
            return  # the device is not to be had, or holds no such array


def _tried(opened: OpenDevice, entry: Entry) -> Iterator[str]:
    spec = registry.find(entry.kernel.op)
    sig = None if spec is None else _sample(opened, entry, spec)
    if sig is None:
        return
    selection = select(sig, opened.kernels, opened.name)
    mine = entry.kernel.qualname, entry.plugin
    yield from (r.reason for r in selection.rejections if r.fault and (r.kernel, r.plugin) == mine)
    admitted = (selection.chosen, *selection.alternatives)
    if entry.kernel.bind is None or entry not in admitted:
        return
    try:
        bound = entry.kernel.bind(sig)
    except (errors.OpError, NotImplementedError):
        return  # it declines
    except Exception as e:
        yield f"its bind() raised {type(e).__name__}: {e}"
        return
    if not callable(bound):
        yield f"its bind() returned {bound!r}, which cannot be called"


def _sample(opened: OpenDevice, entry: Entry, spec: OpSpec) -> NodeSig | None:
    """The first sample of the kernel's op in a type that it admits, as the kernel sees it."""
    attr = varied_attr(spec)
    admitted = entry.kernel.dtypes.get(attr, possible_dtypes(spec))
    for dtype in sorted(admitted & possible_dtypes(spec), key=_familiar):
        for made in sample_sets_for(spec.name):
            sample = next(made.make(numpy_dtype(dtype.name)), None)
            if sample is None:
                continue
            with tf.Graph().as_default():
                case = build_case(
                    spec, sample.inputs, sample.attrs, attr=attr, dtype=dtype, variant="plain",
                    scope="", name="trial",
                )  # fmt: skip
                block = prune([], [case.op], [])
            node = next((n for n in block.nodes if n.name == case.op.name), None)
            if node is None:
                return None
            sig = node_sig(node, None, ResourceManager())
            sig.device = opened.device
            return sig
    return None


def _familiar(dtype: DType) -> tuple[bool, str]:
    return dtype is not dtypes.float32, dtype.name
