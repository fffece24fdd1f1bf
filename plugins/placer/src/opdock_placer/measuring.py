"""A cost model made of traces: a step is run on each device."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final

import opdock as tf
from opdock.plugin import as_dtype
from opdock_placer.model import CostModel, Work
from opdock_placer.placement import pinned_to, short_name, work

__all__ = ["learn", "measure"]

_FUSING: Final = "fuse,cluster,updates,segments"
"""The passes after which a node computes what were several."""
_Sizes = dict[str, list[tuple[float, int]]]  # of each node's outputs: bytes, and an element's
_VALUE: Final = re.compile(r"(\w+) \[([\d,?]*)\]")  # "float32 [256,512]"


def measure(
    fetches: Any,
    feed_dict: Any = None,
    *,
    setup: Any = None,
    devices: Sequence[str] | None = None,
    steps: int = 5,
    model: CostModel | None = None,
) -> CostModel:
    """Runs a step on each device, traced, and learns what its ops and copies take.

    The step runs as it would and with nothing fused, which tells how the time of what was fused is
    to be shared among its parts. Each device gets sessions of its own on the default graph; what a
    device cannot run stays with core's choice. What device scopes pin down stays there.

    Args:
        fetches, feed_dict: the step, as for `Session.run`.
        setup: run first in each session: initializers.
        devices: such as "GPU:0"; all that placement may choose, by default.
        steps: traced steps; the fastest of each node counts.
        model: learns on, instead of a new one.

    Returns:
        The model.

    Raises:
        ValueError: there is no such device.
    """
    model = CostModel() if model is None else model
    with tf.Session(config=_config()) as session:
        names = [short_name(d.name) for d in session.list_devices()]
        rows = session.explain(fetches, feed_dict).rows
        fed = [short_name(r.device) for r in rows if r.how == "feed"]
        model.preferred = fed[0] if fed else names[0]
    for device in devices if devices is not None else names:
        if device not in names:
            raise ValueError(f"there is no device {device!r}; there are: {', '.join(names)}")
        with pinned_to(device):
            learn(model, *(_traced(fetches, feed_dict, setup, steps, off) for off in ("", _FUSING)))
    return model


def _config(off: str = "") -> Any:
    config = tf.ConfigProto(allow_soft_placement=True)
    if off:
        ours = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
        ours.parameter_map["disable_passes"].s = off.encode()
    return config


def _traced(fetches: Any, feed_dict: Any, setup: Any, steps: int, off: str) -> list[Sequence[Any]]:
    """The rows of some steps of a session that lacks some passes."""
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(config=_config(off)) as session:
        session.explain(fetches, feed_dict)  # variables are where the step wants them
        if setup is not None:
            session.run(setup)
        for _ in range(3):  # code is generated beside the first steps
            session.run(fetches, feed_dict)
        traced: list[Sequence[Any]] = []
        for _ in range(steps):
            metadata = tf.RunMetadata()
            session.run(fetches, feed_dict, options=options, run_metadata=metadata)
            traced.append(session.explain(fetches, feed_dict, metadata).rows)
    return traced


def learn(
    model: CostModel, traced: Sequence[Sequence[Any]], apart: Sequence[Sequence[Any]] = ()
) -> None:
    """Adds what traced steps of one program took.

    Args:
        model: learns.
        traced: of each step the rows of its `Explanation`.
        apart: the same of steps in which nothing is fused: the time of what is fused in `traced` is
            shared among its parts as they took it there; without them, evenly.
    """
    rows = traced[0]
    sizes = {row.node: [_size(text) for text in row.outputs] for row in rows}
    least, alone = _least(traced), _least(apart)
    for row in rows:
        if row.how == "fused":
            continue
        if row.how in ("builtin", "feed"):
            model.free.add(row.op)
        elif row.node in least:
            parts = [r for r in rows if r.how == "fused" and r.node in row.members] or [row]
            known = [alone[part.node] for part in parts if part.node in alone] or [1.0]
            weights = [alone.get(part.node, fmean(known)) for part in parts]
            for part, weight in zip(parts, weights, strict=True):
                _add(model, part, row, sizes, least[row.node] * weight / sum(weights))


def _least(traced: Sequence[Sequence[Any]]) -> dict[str, float]:
    """The seconds of each node in the step in which it was fastest; never none at all."""
    found: dict[str, float] = {}
    for row in (row for step in traced for row in step):
        if row.us is not None and row.how != "fused":
            found[row.node] = min(max(row.us, 1e-3) * 1e-6, found.get(row.node, math.inf))
    return found


def _add(model: CostModel, part: Any, row: Any, sizes: _Sizes, seconds: float) -> None:
    """One node's sample; what was fused shares the time of what it was fused into."""
    device = short_name(row.device)
    inputs = [size for name in part.inputs for size in _input(name, sizes)]
    outputs = [_size(text) for text in part.outputs]
    done = work(inputs, outputs)
    if row.how != "copy":
        model.add(device, part.op, done, seconds)
    elif row.kernel in ("upload", "download"):
        model.add_copy(device, row.kernel, Work(done.bytes / 2), seconds)


def _input(name: str, sizes: _Sizes) -> list[tuple[float, int]]:
    """Bytes of an input and of its elements; it is named as "MatMul", "split:1" or a feed is."""
    node, _, index = name.rpartition(":")
    if name in sizes:
        return sizes[name][:1]
    if node in sizes and index.isdigit() and int(index) < len(sizes[node]):
        return [sizes[node][int(index)]]
    return []


def _size(text: str) -> tuple[float, int]:
    found = _VALUE.match(text)
    if found is None:
        return 8.0, 8
    each = as_dtype(found[1].removesuffix("_ref")).size or 8
    total = float(each)
    for d in filter(None, found[2].split(",")):
        total *= int(d) if d.isdigit() else 1
    return total, each
