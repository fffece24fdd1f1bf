"""Computes with the values at which kernels differ, and lists where they do: `make numbers`.

    python tools/special_values.py --tensorflow PYTHON --ops Add,Div
    python tools/special_values.py --device /device:OPENCL:0 --types float32,int32

Every elementwise op gets all pairs of special values of each of its types; every other op with
samples of floats gets the samples' shapes filled with them. One GraphDef holds all nodes, so that
each form of the CPU's kernels, TensorFlow where its Python is named, and another device where one
is named, computes the same ones, in a process of its own. The report (build/numbers/report.txt) has
a line for each op and type that is not the same everywhere; `docs/reliability.md` says why that is
where it stays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path("build/numbers")
FORMS = {
    "generated": {"OPDOCK_JIT": "sync"},
    "onednn": {"OPDOCK_JIT": "off"},
    "numpy": {"OPDOCK_JIT": "off", "OPDOCK_ONEDNN": "off"},
}
"""Each form of the kernels by the settings that leave others out; the last is the yardstick."""
NOW = "now"
"""The file with the case that is being run."""
DEVICE = "device"
"""The form of the device that is named."""
ULPS = 8
"""Functions such as `exp` may differ by so many; the conformance suite judges them."""
COMPILED = 1 << 10
"""Elements of which even two ops are worth generated code; with fewer NumPy would judge itself."""
SIZES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16")


def special(name: str) -> Any:
    """The special values of a type."""
    dtype = np.dtype(name)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bits = info.bits
        small = [0, 1, 2, 3, 7, bits - 1, bits, info.max - 1, info.max]
        return np.array(small + ([-1, -2, -7, info.min + 1, info.min] if info.min else []), dtype)
    limits = np.finfo(dtype)
    plus = [limits.smallest_subnormal, limits.tiny, limits.eps, 0.5, 1, 1.5, 2.5, 88, limits.max]
    return np.array([0, *plus, np.inf, np.nan, *(-v for v in plus), -0.0, -np.inf], dtype)


# ---------------------------------------------------------------- the nodes
def elementwise(spec: Any, dtype: Any) -> Iterator[tuple[Any, dict[str, Any], str]]:
    """The arrays for all pairs, and for single values in other shapes."""
    values = special(dtype.name)
    count = len(spec.definition.inputs)
    if count == 1:
        pairs = [values]
    else:
        rest = [np.tile(values, len(values))] * (count - 2)
        pairs = [np.repeat(values, len(values)), np.tile(values, len(values)), *rest]
    times = -(-COMPILED // len(pairs[0]))
    yield [np.tile(p, times) for p in pairs], {}, "pairs"
    yield [np.zeros((0, 3), values.dtype)] * count, {}, "empty"
    yield [values[-1:].reshape(())] * count, {}, "scalar"
    if count == 2:
        yield [values.reshape(-1, 1), values.reshape(1, -1)], {}, "broadcast"


def make(wanted: frozenset[str], types: frozenset[str]) -> None:
    """Writes the graph, what is fed, and which node is which."""
    import opdock as tf
    from opdock.graph.nodes import registry
    from opdock.testing.harness.build import build_case
    from opdock.testing.harness.claims import possible_dtypes, varied_attr
    from opdock.testing.harness.sample import sample_ops, samples_for

    cases, feeds = [], {}
    with tf.Graph().as_default() as graph:
        for op in sorted(wanted or sample_ops()):
            spec = registry.get(op)
            plain = spec.expr is not None and all(
                a.type_attr == "T" for a in spec.definition.inputs
            )
            for dtype in sorted(possible_dtypes(spec), key=lambda d: d.name):
                if dtype.name not in types or (not plain and not dtype.is_floating):
                    continue
                found = elementwise(spec, dtype) if plain else (
                    (s.inputs, s.attrs, s.tag)
                    for s in samples_for(op, dtype.np) if not s.shape_only
                )  # fmt: skip
                for number, (inputs, attrs, tag) in enumerate(found):
                    name = f"{op}_{dtype.name}_{number}"
                    try:
                        built = build_case(
                            spec, inputs, attrs, attr=varied_attr(spec), dtype=dtype,
                            variant="unknown", scope="", name=name,
                        )  # fmt: skip
                    except (ValueError, TypeError) as e:  # a sample for another of its types
                        print(f"{name} is left out: {str(e)[:100]}", file=sys.stderr)
                        continue
                    if built.variables:
                        continue
                    given = {t.name: a for t, a in built.feeds.items()}
                    fetches = list(built.fetches)
                    if plain:  # with a neighbour, without which nothing is generated
                        one = tf.placeholder(dtype, [])
                        given[one.name] = np.ones((), dtype.np)
                        fetches += [t * one for t in built.outputs if t.dtype == dtype]
                    else:
                        given |= {t.name: filled(a, i) for i, (t, a) in enumerate(built.data)}
                    feeds |= {f"{name}|{k}": v for k, v in given.items() if v.dtype != object}
                    if all(v.dtype != object for v in given.values()):
                        cases.append((name, op, dtype.name, tag, [t.name for t in fetches]))
        (FOLDER / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.savez(FOLDER / "feeds.npz", **feeds)
    (FOLDER / "cases.json").write_text(json.dumps(cases))


def filled(array: Any, turn: int) -> Any:
    """An array of the same shape and type, of special values."""
    if array.dtype.name not in SIZES:
        return array
    values = np.roll(special(array.dtype.name), 5 * turn)
    return np.resize(values, array.shape) if array.size else array


# ---------------------------------------------------------------- what they give
def run(form: str, part: int, device: str, fatal: frozenset[str]) -> None:
    """Runs nodes, on a device if it has a kernel; keeps their results, or the classes of errors.

    Args:
        form: whose kernels.
        part: which of the cases.
        device: where, if not where placement would.
        fatal: the cases that end TensorFlow's process.
    """
    if form == "tensorflow":
        import tensorflow.compat.v1 as tf
    else:
        import opdock as tf
    graph_def = tf.GraphDef.FromString((FOLDER / "graph.pb").read_bytes())
    feeds = dict(np.load(FOLDER / "feeds.npz"))
    given: dict[str, dict[str, Any]] = {}
    for key, value in feeds.items():
        name, _, tensor = key.partition("|")
        given.setdefault(name, {})[tensor] = value
    results: dict[str, Any] = {}
    failed = dict.fromkeys(fatal, "refused: it ends the process")
    config = tf.ConfigProto(allow_soft_placement=True)
    nodes = {n.name: n for n in graph_def.node}
    cases = json.loads((FOLDER / "cases.json").read_text())
    for name, *_, fetches in cases[part :: parts(form)]:
        if name in fatal:
            continue
        (FOLDER / NOW).write_text(name)
        case = type(graph_def)(versions=graph_def.versions)
        case.node.extend(nodes[n] for n in needed(fetches, nodes))
        try:
            with tf.Graph().as_default(), tf.Session(config=config) as session:
                with tf.device(device or None):
                    tf.import_graph_def(case, name="")
                for i, value in enumerate(session.run(fetches, given.get(name))):
                    results[f"{name}|{i}"] = np.asarray(value)
        except ValueError as e:  # the op, or its type, is unknown
            if form != "tensorflow":
                raise
            failed[name] = f"refused: {str(e)[:60]}"
        except Exception as e:
            failed[name] = type(e).__name__
    kept = {k: v for k, v in results.items() if v.dtype.name in (*SIZES, "bool")}
    np.savez(FOLDER / f"{form}.{part}.npz", **kept)
    (FOLDER / f"{form}.{part}.json").write_text(json.dumps(failed))


def parts(form: str) -> int:
    """How many processes share the cases: what ends TensorFlow's has a few run again."""
    return 40 if form == "tensorflow" else 1


def needed(fetches: list[str], nodes: dict[str, Any]) -> set[str]:
    """The names of the nodes that are needed for results."""
    found: set[str] = set()
    left = [name.partition(":")[0] for name in fetches]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [i.lstrip("^").partition(":")[0] for i in nodes[name].input]
    return found


# ---------------------------------------------------------------- the report
def apart(a: Any, b: Any) -> Any:
    """Where two results are not the same number."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.array(True)
    if a.dtype.kind != "f":
        return a != b
    with np.errstate(all="ignore"):
        slack = ULPS * np.maximum(np.spacing(np.abs(a)), np.spacing(np.abs(b)))
        near = np.abs(a - b) <= slack
    same = (a == b) & ((a != 0) | (np.signbit(a) == np.signbit(b)))
    return ~(same | (np.isnan(a) & np.isnan(b)) | (near & (a != 0) & (b != 0)))


def subnormal(array: Any) -> Any:
    """Where an array has subnormal numbers."""
    if array.dtype.kind != "f":
        return np.zeros(array.shape, bool)
    return (array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)


def report(forms: list[str]) -> Iterator[str]:
    """A line for each op, type and form that differs from the yardstick."""
    results: dict[str, dict[str, Any]] = {form: {} for form in forms}
    failed: dict[str, dict[str, str]] = {form: {} for form in forms}
    for form in forms:
        for part in range(parts(form)):
            results[form] |= np.load(FOLDER / f"{form}.{part}.npz")
            failed[form] |= json.loads((FOLDER / f"{form}.{part}.json").read_text())
    by_case: dict[str, list[Any]] = {}
    for key, value in np.load(FOLDER / "feeds.npz").items():
        by_case.setdefault(key.partition("|")[0], []).append(value.reshape(-1))
    for name, op, dtype, tag, fetches in json.loads((FOLDER / "cases.json").read_text()):
        given = by_case.get(name, [])
        for form in forms:
            if form == "numpy":
                continue
            mine, others = failed["numpy"].get(name), failed[form].get(name)
            if mine or others:
                if mine != others and not str(others).startswith("refused"):
                    yield f"{op} {dtype} {tag}: {form} {others}, numpy {mine}"
                continue
            for i in range(len(fetches)):
                key = f"{name}|{i}"
                if key not in results["numpy"] or key not in results[form]:
                    continue
                a, b = results[form][key], results["numpy"][key]
                wrong = np.atleast_1d(apart(a, b)).reshape(-1)
                fits = a.shape == b.shape and all(g.size in (1, a.size) for g in given)
                if form == "tensorflow" and a.shape == b.shape:
                    # Its threads take subnormal numbers for zero, and give none.
                    for array in (a, b, *(given if fits else ())):
                        wrong &= ~subnormal(array.reshape(-1))
                if not wrong.any():
                    continue
                at = int(np.argmax(wrong))
                of = [g[at % g.size].item() for g in given] if fits else "?"
                was = (a.reshape(-1)[at], b.reshape(-1)[at]) if a.shape == b.shape else (a, b)
                yield (
                    f"{op} {dtype} {tag} [{i}]: {int(wrong.sum())} of {wrong.size}; of {of} {form} "
                    f"has {was[0]}, numpy {was[1]}"
                )


def completed(words: list[str], settings: dict[str, str], may_end: bool) -> bool:
    """Whether a process got through its cases; those that end TensorFlow's are told of."""
    env = {**os.environ, **settings}
    while (status := subprocess.run(words, check=False, env=env).returncode) != 0:
        if status > 0 or not may_end:
            return False
        name = (FOLDER / NOW).read_text()
        words = [*words, "--fatal", name]
        print(f"{name} ends TensorFlow's process and is left out", file=sys.stderr)
    return True


def main() -> int:
    """Runs all forms, each in a process of its own, and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="")
    parser.add_argument("--types", default=",".join(SIZES))
    parser.add_argument("--tensorflow", help="a Python that has TensorFlow")
    parser.add_argument("--device", default="", help="one to compare with the CPU's NumPy")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fatal", action="append", default=[], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.run, args.part, args.device, frozenset(args.fatal))
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    make(frozenset(filter(None, args.ops.split(","))), frozenset(args.types.split(",")))
    forms = ["numpy", DEVICE] if args.device else list(FORMS)
    forms += ["tensorflow"] if args.tensorflow else []
    for form in forms:
        python = args.tensorflow if form == "tensorflow" else sys.executable
        words = [python, __file__, "--run", form]
        words += ["--device", args.device] if form == DEVICE else []
        # What the device has no kernel for is NumPy's in both.
        settings = FORMS["numpy" if form == DEVICE else form] if form in (*FORMS, DEVICE) else {}
        for part in range(parts(form)):
            if not completed([*words, "--part", str(part)], settings, form == "tensorflow"):
                return 1
    lines = list(report(forms))
    (FOLDER / "report.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines) or "the same everywhere")
    return 0


if __name__ == "__main__":
    sys.exit(main())
