"""A call of an op as a file that any library of TensorFlow's graphs can run."""

from __future__ import annotations

import contextlib
import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.testing.harness.build import build_case
from opdock.testing.harness.claims import numpy_dtype, possible_dtypes, varied_attr
from opdock.testing.harness.sample import Sample, sample_ops, samples_for
from opdock.testing.levels.gradients import has_gradient
from registry.enlarge import Call, arrays, calls

CHOICES = Path(__file__).with_name("choices.json")
"""Which call each row is of, so that all machines measure the same ones."""
SIZES = {"small": 1, "usual": 1 << 16, "large": 1 << 21}
_LONG = 2.0
"""Seconds that a first step may take: what windows as large as images make takes minutes."""
_PREFERRED = ("float32", "int32", "bool", "complex64", "string")
_ALSO = ("float64", "float16", "int64", "int32", "uint8")
"""Other element types that are common, each a row of usual size."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        op: the op type.
        size: a key of SIZES.
        backward: whether its gradient is computed too.
        also: an element type other than the op's own row has, or "".
    """

    op: str
    size: str
    backward: bool
    also: str = ""

    @property
    def name(self) -> str:
        """On the command line: "MatMul.usual", "MatMul.grad.usual", "MatMul.usual.float64"."""
        words = [self.op, "grad" if self.backward else "", self.size, self.also]
        return ".".join(filter(None, words))

    @property
    def dtype(self) -> dtypes.DType | None:
        """The element type; None for one that is rare."""
        return dtypes.as_dtype(self.also) if self.also else element_type(self.op)


def rows() -> Iterator[Row]:
    """All there can be, by op."""
    for op in sorted(sample_ops()):
        spec = registry.find(op)
        if spec is None or element_type(op) is None:
            continue
        for backward in (False, True) if has_gradient(spec) else (False,):
            for size in SIZES:
                yield Row(op, size, backward)
            for also in others(op):
                if not backward or dtypes.as_dtype(also).is_floating:
                    yield Row(op, "usual", backward, also)


def choices() -> dict[str, int]:
    """Which of the calls that there could be a row is of, by the row's name."""
    known: dict[str, int] = json.loads(CHOICES.read_text(encoding="utf-8"))
    return known


def choose(chosen: Sequence[Row]) -> None:
    """Looks for the calls of some rows, and keeps which they are."""
    kept = choices()
    for row in chosen:
        with tempfile.TemporaryDirectory() as place:
            found = write(row, Path(place))
        kept.pop(row.name, None)
        if found is not None:
            kept[row.name] = found["choice"]
        text = json.dumps(dict(sorted(kept.items())), indent=0)
        CHOICES.write_text(text + "\n", encoding="utf-8")


def element_type(op: str) -> dtypes.DType | None:
    """The element type of an op's rows: float32 where it takes it, None for a rare one."""
    possible = {d.name: d for d in possible_dtypes(registry.get(op))}
    return next((possible[name] for name in _PREFERRED if name in possible), None)


def others(op: str) -> list[str]:
    """The other common element types that an op takes."""
    own, possible = element_type(op), possible_dtypes(registry.get(op))
    return [d.name for d in map(dtypes.as_dtype, _ALSO) if d in possible - {own}]


def write(row: Row, folder: Path, choice: int | None = None) -> dict[str, Any] | None:
    """Writes graph and inputs.

    Args:
        row: the line of the table.
        folder: where to.
        choice: which of the calls that there could be it is; without it the first one that is
            large enough, among those that are quick enough here.

    Returns:
        The names that a library needs to run them, and the `choice`; None if no sample can be made
        so large.
    """
    dtype = row.dtype
    assert dtype is not None
    found = [s for s in samples_for(row.op, numpy_dtype(dtype.name)) if usable(s, row.backward)]
    spec = registry.get(row.op)
    sized = [a.name for a in spec.definition.attrs.values() if a.type == "shape"]
    many = small(found) if row.size == "small" else calls(found, sized, SIZES[row.size])
    if choice is None:
        best = search(row, dtype, many)
    else:
        best = program(row, dtype, next(itertools.islice(many, choice, None)), patient=True)
        best["choice"] = choice
    if best is None or (row.size != "small" and best["elements"] < SIZES[row.size] // 16):
        return None
    (folder / "graph.pb").write_bytes(best.pop("graph"))
    np.savez(folder / "inputs.npz", **best.pop("arrays"))
    (folder / "names.json").write_text(json.dumps(best), encoding="utf-8")
    return best


def search(row: Row, dtype: dtypes.DType, many: Iterator[Call]) -> dict[str, Any] | None:
    """The program of the first call that is large enough, or of the largest that is quick."""
    best, begin = None, time.perf_counter()
    for number, call in enumerate(many):
        if best is not None and call.elements <= 2 * best["elements"]:
            continue
        with contextlib.suppress(Exception):  # what cannot be so large says so in any kind of error
            best = {**program(row, dtype, call), "choice": number}
        enough = best is not None and call.elements >= SIZES[row.size] // 4
        if enough or time.perf_counter() - begin > 5 * _LONG:
            break
    return best


def small(samples: list[Sample]) -> Iterator[Call]:
    """The samples as they are, those that compute something first."""
    full = [s for s in samples if all(np.size(a) for a in arrays(s.inputs))]
    for sample in full or samples:
        size = max((int(np.size(a)) for a in arrays(sample.inputs)), default=0)
        yield Call(sample, list(sample.inputs), dict(sample.attrs), size)


def usable(sample: Sample, backward: bool) -> bool:
    """Whether a sample has a value to compare, and a gradient where one is asked for."""
    return not sample.shape_only and (sample.grad or not backward)


def program(row: Row, dtype: dtypes.DType, call: Call, patient: bool = False) -> dict[str, Any]:
    """The graph of a call, run once.

    Args:
        row: the line of the table.
        dtype: the element type.
        call: the arguments.
        patient: whether it may take long, on a machine that is busy.

    Raises:
        Exception: whatever building or running it raises.
    """
    spec = registry.get(row.op)
    with tf.Graph().as_default() as graph:
        case = build_case(
            spec, call.inputs, call.attrs, attr=varied_attr(spec) or "", dtype=dtype,
            variant="plain", scope="", name="case",
        )  # fmt: skip
        if any(t.dtype.is_quantized for t in (*case.op.inputs, *case.op.outputs)):
            raise ValueError("quantized values are measured by programs of their own")
        outputs, targets, given = list(case.outputs), [case.op], dict(case.feeds)
        if row.backward:
            outputs, grads = gradients(case, call.sample)
            targets = [t.op for t in outputs]
            given.update(grads)
        init = tf.group(*(v.initializer for v in case.variables), name="init")
        with tf.Session() as session:
            session.run(init)
            begin = time.perf_counter()
            # What waits for something that nobody brings gives up.
            patience = tf.RunOptions(timeout_in_ms=int(2000 * _LONG * (20 if patient else 1)))
            session.run(outputs or targets, given, options=patience)
            if time.perf_counter() - begin > _LONG and not patient:
                raise ValueError("so large that it takes too long")
        feeds = {t.name: a for t, a in given.items()}
        plain = None if row.backward or case.variables else plainly(case)
    stored = {
        f"a{i}": a.astype("S") if a.dtype.kind == "O" else a for i, a in enumerate(feeds.values())
    }
    also = plain.pop("arrays") if plain is not None else {}
    shapes = ", ".join("×".join(map(str, np.shape(a))) or "scalar" for a in arrays(call.inputs))
    return {
        "elements": call.elements,
        "graph": graph.as_graph_def().SerializeToString(),
        "arrays": stored | also,
        "feeds": dict(zip(feeds, stored, strict=True)),
        "outputs": [t.name for t in outputs],
        "targets": [op.name for op in targets],
        "init": init.name,
        "random": spec.traits.random,
        "call": plain,
        "about": f"{dtype.name} {shapes}",
    }


def plainly(case: Any) -> dict[str, Any] | None:
    """The call for libraries that know no graphs: its op, attributes, and names of input arrays.

    `known` marks the inputs that are shapes and axes, constants of the graph.
    """
    spec, fed, kept = registry.get(case.op.type), {id(t) for t in case.feeds}, {}
    tensors, names, known = iter(case.op.inputs), [], []
    for i, value in enumerate(case.inputs):
        parts = value if isinstance(value, list) else [value]
        keys = [f"c{i}_{k}" for k in range(len(parts))]
        if any(np.asarray(a).dtype.kind not in "biufc" for a in parts):
            return None
        kept.update(zip(keys, map(np.asarray, parts), strict=True))
        names.append(keys if isinstance(value, list) else keys[0])
        known.append(not all(id(next(tensors)) in fed for _ in parts))
    attrs = {name: case.op.get_attr(name) for name in spec.definition.attrs}
    told = {k: [*v] if isinstance(v, (list, tuple)) else v for k, v in attrs.items()}
    told = {k: v.decode() if isinstance(v, bytes) else v for k, v in told.items()}
    simple = {k: v for k, v in told.items() if isinstance(v, (bool, int, float, str)) or whole(v)}
    return {"op": case.op.type, "attrs": simple, "inputs": names, "known": known, "arrays": kept}


def whole(value: Any) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(value, list) and all(isinstance(v, int) for v in value)


def gradients(case: Any, sample: Sample) -> tuple[list[Any], dict[Any, Any]]:
    """The gradients of all that has one, and what is fed as the gradients of the outputs.

    Ones, which `tf.gradients` takes by itself, would be constants, and much of it computed once.
    """
    chosen = range(len(case.op.outputs)) if sample.grad_outputs is None else sample.grad_outputs
    floats = [o for i, o in enumerate(case.op.outputs) if i in chosen and o.dtype.is_floating]
    wanted = [
        tensor
        for (tensor, _), place in zip(case.data, case.places, strict=True)
        if sample.grad_inputs is None or place in sample.grad_inputs
    ]
    with tf.Session() as session:
        session.run([v.initializer for v in case.variables])
        values = session.run(floats, case.feeds)
    grads = {
        tf.placeholder(o.dtype, o.shape): np.cos(np.arange(v.size)).reshape(v.shape).astype(v.dtype)
        for o, v in zip(floats, values, strict=True)
    }
    found = [g for g in tf.gradients(floats, wanted, list(grads)) if g is not None]
    if not found:
        raise ValueError("nothing to differentiate")
    return [tf.convert_to_tensor(g) for g in found], grads
