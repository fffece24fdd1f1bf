"""The rows of ops: conformance samples that grow, as programs that any library can run."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

ROWS = [
    "MatMul.usual", "Conv2D.grad.usual", "SegmentSum.usual", "ApplyAdam.small", "Tile.usual",
    "MatMul.grad.usual.float64", "Add.usual.int64", "Mean.usual.float16",
]  # fmt: skip


@pytest.fixture
def programs() -> Any:
    from registry import programs

    return programs


def test_there_are_rows_for_most_ops(programs: Any) -> None:
    rows = [row.name for row in programs.rows()]
    assert len(rows) == len(set(rows)) > 1_000
    assert set(ROWS) < set(rows)
    assert {"MatMul.usual.float32", "Add.grad.usual.int64", "Add.large.float64"}.isdisjoint(rows)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_a_program(name: str, programs: Any, tmp_path: Path) -> None:
    row = next(row for row in programs.rows() if row.name == name)
    about = programs.write(row, tmp_path)
    assert about is not None
    assert about["about"].startswith(row.also or "float32")
    if row.size == "usual":
        assert about["elements"] >= programs.SIZES["usual"] // 16
    names = json.loads((tmp_path / "names.json").read_text(encoding="utf-8"))
    with np.load(tmp_path / "inputs.npz") as stored:
        feed = {tensor: stored[key] for tensor, key in names["feeds"].items()}
    definition = tf.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="")
        session.run(names["init"])
        session.run(names["targets"], feed)
        assert all(np.isfinite(value).all() for value in session.run(names["outputs"], feed))


def test_which_call_a_row_is_of_does_not_depend_on_the_clock(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, choices = {row.name: row for row in programs.rows()}, programs.choices()
    assert choices.keys() <= rows.keys()
    assert {row for row in ROWS if row.endswith(".usual")} < choices.keys()
    found = []
    for seconds in (1e-9, 1e3):
        ticks = itertools.count(0.0, seconds)
        monkeypatch.setattr(programs.time, "perf_counter", lambda ticks=ticks: next(ticks))
        name = "NearestNeighbors.usual"
        found.append(programs.write(rows[name], tmp_path, choices[name]))
    assert found[0] == found[1] and found[0]["choice"] == choices[name]


def test_an_op_that_cannot_grow_has_no_large_row(programs: Any, tmp_path: Path) -> None:
    row = programs.Row("LinSpace", "large", False)  # of three scalars
    assert programs.write(row, tmp_path) is None


def test_each_row_that_is_slower_has_a_reason(programs: Any) -> None:
    from fnmatch import filter as matching

    from registry import reasons

    rows = list(programs.rows())
    known = {row.op for row in rows} | {row.name for row in rows}
    patterns = [p for words in reasons.REASONS for p in words.split()]
    assert [p for p in patterns if not matching(known, p)] == []
    page = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
    assert reasons.OPEN not in page.read_text(encoding="utf-8")
    assert reasons.reason("MatMul.usual", 0.95) == reasons.NEAR
    few, many = (reasons.reason(f"RandomGamma.usual{t}", 0.5) for t in ("", ".float64"))
    assert few != many


def test_a_section_names_what_is_slower_and_later_figures_count(tmp_path: Path) -> None:
    import ops

    about = {
        "processor": "P", "cores": 2, "python": "3", "numpy": "2", "opdock": "0", "date": "today",
        "command": "python benchmarks/ops.py",
    }  # fmt: skip
    first, later = tmp_path / "a.json", tmp_path / "b.json"
    for path, ratio in ((first, 0.2), (later, 0.5)):
        row = {
            "name": "StringLength.usual", "about": "string 9", "ratios": {"tensorflow": ratio},
            "steps": {"opdock": 2e-3, "tensorflow": 1e-3},
        }  # fmt: skip
        path.write_text(json.dumps({"about": about, "rows": [row]}), encoding="utf-8")
    found, rows = ops.kept([first, later])
    text = ops.section(found, rows, "tensorflow")
    assert "1 rows, 1 below 1.0 of tensorflow, geometric mean 0.50" in text
    assert "| StringLength.usual | 2 | 1 | 0.50 | string 9: each string" in text
    page = tmp_path / "page.md"
    tables = ("ops", "ops, large", "ops, types")
    sections = "".join(
        f"<!-- begin: benchmarks: {t} -->\n<!-- end: benchmarks: {t} -->\n" for t in tables
    )
    page.write_text(sections, encoding="utf-8")
    named = [{**rows[0], "name": name} for name in ("A.usual", "A.grad.large", "A.usual.int64")]
    ops.write_tables(page, about, named, "tensorflow")
    told = page.read_text(encoding="utf-8")
    assert [told.index(f"| {row['name']} |") for row in named] == sorted(
        told.index(f"| {row['name']} |") for row in named
    )


def test_floors_are_kept_and_name_what_is_below(tmp_path: Path) -> None:
    import floors

    path = tmp_path / "floors.json"
    rows = [
        {"name": "A.small", "ratios": {"tensorflow": 3.0}},
        {"name": "B.small", "ratios": {"tensorflow": 0.3}},
        {"name": "C.small", "wrong": {"opdock": "results are 1 apart"}},
    ]
    floors.write(path, {"threads": 1, "clock": "the processors'"}, rows, "tensorflow")
    floors.write(
        path,
        {"threads": 1, "clock": "the processors'"},
        [{"name": "D.small", "ratios": {"tensorflow": 6.0}}],
        "tensorflow",
    )
    least = floors.read(path)
    assert floors.how(path) == (1, "the processors'")
    assert least == {"A.small": 1.0, "B.small": 0.1, "D.small": 2.0}
    now = [
        {"name": "A.small", "ratios": {"tensorflow": 1.1}},
        {"name": "B.small", "ratios": {"tensorflow": 0.05}},
        {"name": "D.small", "wrong": {"opdock": "no answer"}},
        {"name": "E.small", "ratios": {"tensorflow": 0.01}},
    ]
    assert floors.below(least, now, "tensorflow") == ["B.small", "D.small"]


@pytest.mark.parametrize("library", ["torch", "jax", "numpy"])
def test_what_a_library_computes_for_an_op_is_what_opdock_does(
    library: str, programs: Any, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"only `make {library}` installs {library}")
    from importlib import import_module

    functions = import_module(f"twins.{library}_ops")
    compared = 0
    choices = programs.choices()  # the first that is quick would be another on a busy machine
    for op in ("AddV2", "ConcatV2", "Conv2D", "MatMul", "Max", "MaxPool", "Pad", "TopKV2"):
        row = programs.Row(op, "usual", False)
        about = programs.write(row, tmp_path, choices[row.name])
        call = about["call"]
        found = functions.function(op, call["attrs"])
        if found is None:  # the sample has attributes of which nobody wrote
            continue
        with np.load(tmp_path / "inputs.npz") as stored:
            inputs = [
                [stored[k] for k in n] if isinstance(n, list) else stored[n] for n in call["inputs"]
            ]
            feed = {tensor: stored[key] for tensor, key in about["feeds"].items()}
        with tf.Graph().as_default(), tf.Session() as session:
            definition = tf.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
            tf.import_graph_def(definition, name="")
            ours = session.run(about["outputs"], feed)
        theirs = functions.step(found, inputs, call["known"])()
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        compared += 1
    assert compared >= 6


def test_ci_compares_common_ops_with_numpy(programs: Any) -> None:
    import floors
    from twins import numpy_ops, op_names

    root = Path(__file__).resolve().parents[2]
    assert "\nmake floors\n" in (root / ".ci" / "run").read_text(encoding="utf-8")
    path = root / "benchmarks" / "floors_numpy.json"
    assert f"--floor benchmarks/{path.name}" in (root / "Makefile").read_text(encoding="utf-8")
    assert floors.how(path) == (1, "the processors'")
    least, choices = floors.read(path), programs.choices()
    assert len(least) >= 40
    assert least.keys() <= choices.keys()
    assert min(least.values()) > 0
    known = {*op_names.SHARED, *op_names.REDUCTIONS, *numpy_ops.WRITTEN}
    assert {name.removesuffix(".usual") for name in least} <= known


def test_figures_of_a_row_are_replaced_by_library(tmp_path: Path) -> None:
    import ops

    about = {"date": "2026-11-29"}
    old = [
        {"name": "B.usual", "about": "x", "steps": {"opdock": 1.0}, "ratios": {"haswell": 2.0}},
        {"name": "A.usual", "about": "x", "wrong": {"tensorflow": "no op"}},
    ]
    new = [{"name": "B.usual", "about": "y", "steps": {"opdock": 3.0}, "ratios": {"cpu": 0.5}}]
    for name, rows in (("old", old), ("new", new)):
        ops.keep(tmp_path / name, about, rows)
    found = ops.kept([tmp_path / "old", tmp_path / "new"])
    merged = {"name": "B.usual", "about": "y", "steps": {"opdock": 3.0}}
    assert found == (about, [old[1], {**merged, "ratios": {"haswell": 2.0, "cpu": 0.5}}])


def test_the_page_tells_what_the_kept_figures_say() -> None:
    import ops

    root = Path(__file__).resolve().parents[2]
    about, rows = ops.kept([root / "benchmarks" / "registry" / "usual.json"])
    page = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert ops.section(about, rows, "tensorflow") in page


def test_narrower_processors_have_a_table_of_what_loses_most() -> None:
    import narrower

    about = {"processor": "P", "cores": 2, "python": "3", "numpy": "2", "opdock": "0"}
    rows = [
        {"name": f"R{i}", "about": "x", "steps": {"opdock": 1e-3, "haswell": i * 1e-3},
         "ratios": {"haswell": float(i)}}
        for i in range(1, 40)
    ]  # fmt: skip
    text = narrower.section({**about, "date": "d", "command": "c"}, rows)
    assert "39 rows" in text and "37 above 2.5" in text and "Nehalem" not in text
    lines = [line for line in text.splitlines() if line.startswith("| R")]
    assert lines[0].startswith("| R39 ") and lines[0].endswith(" 39.00 |") and len(lines) == 15


def test_narrower_processors_take_vectors_away() -> None:
    import compare
    import narrower

    for name, processor in narrower.PROCESSORS.items():
        side = compare.Side(name, variables=processor.variables)
        worker = compare.Worker(side, compare.Setting([side], threads=1))
        assert "error" not in worker.hello
        environment = compare.Setting([side], threads=1).environment(side)
        assert environment["OPDOCK_JIT_CPU"] == name
        worker.close()


def test_common_ops_have_rows(programs: Any) -> None:
    from twins import op_names

    assert {f"{op}.usual" for op in op_names.COMMON} <= programs.choices().keys()
