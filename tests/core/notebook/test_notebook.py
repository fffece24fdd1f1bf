"""What notebooks show: the example is run cell by cell, and names of strangers stay text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import opdock as tf
from opdock.notebook import extension, shown
from opdock.notebook.bar import Bar
from opdock.testing.harness.case import Result
from opdock.testing.report.report import Report, UnitOutcome

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = "<script>alert(1)</script>"


def test_the_example_runs_and_shows_what_it_says(tmp_path: Path) -> None:
    """In a process of its own, as `%%tf1` changes the whole process."""
    out = tmp_path / "shown.json"
    command = [sys.executable, Path(__file__).parent / "run_notebook.py"]
    home = {**os.environ, "IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, ROOT / "examples/notebook.ipynb", out],
        env=home, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    loaded, tensor, op, graph, session, explained, _, closed, result = json.loads(out.read_text())
    assert loaded == {}
    for told, words in (
        (tensor, ["Tensor", "y/Relu:0", "float32", "(?, 2)"]),
        (op, ["Relu", "y/Relu", "y/BiasAdd:0"]),
        (graph, ["Graph", "MatMul", "trainable_variables: 2"]),
        (session, ["Session", "/device:CPU:0"]),
        (explained, ["ops", "<iframe sandbox", "srcdoc="]),
        (closed, ["Session", "closed"]),
    ):
        for word in words:
            assert word in told["text/html"], (word, told["text/html"][:500])
    assert result["text/plain"] in ("6.0", "np.float64(6.0)")


def test_names_are_text() -> None:
    op = tf.placeholder(tf.float32, [2], name="a").op
    with tf.Graph().as_default() as graph:
        graph.add_to_collection(HOSTILE, 1)
    outcome = UnitOutcome(
        HOSTILE, "L2", "Add", "float32", True, "failed",
        (Result("L2", "Add", "float32", "", "failed", HOSTILE),), 0.5,
    )  # fmt: skip
    report = Report({"name": HOSTILE}, (outcome,), 0, 1.0)
    with tf.Session() as session:
        told = session.explain(op.outputs[0], {op.outputs[0]: [1.0, 2.0]})
    told.missing.append(HOSTILE)
    pieces = [shown.of_graph(graph), shown.of_report(report), shown.of_explanation(told)]
    for html in pieces:
        assert HOSTILE not in html
        assert "&lt;script&gt;alert(1)" in html or "\\u003cscript" in html
    assert "1 failed" in pieces[1]


def test_a_shadow_is_a_table() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.sinh(x, name="y")
    with tf.Session() as session, session.shadow("echo:0", share=1.0, budget=1e9) as shadow:
        assert "<th" not in shown.of_shadow(shadow)
        session.run(y, {x: [1.0, 2.0]})
        html = shown.of_shadow(shadow)
        assert "1 results of 1 ops" in html and "Sinh" in html and "test_notebook.py" in html
        (compared,) = shadow.found.values()
        compared.error = shadow.skipped["z"] = HOSTILE
        html = shown.of_shadow(shadow)
    assert HOSTILE not in html and html.count("&lt;script&gt;alert(1)") == 2


class Publisher:
    """What IPython's shell publishes with."""

    def __init__(self) -> None:
        self.shown: list[tuple[dict[str, str], str, bool]] = []
        self.display_pub = self

    def publish(self, data: dict[str, str], *, transient: dict[str, str], update: bool) -> None:
        self.shown.append((data, transient["display_id"], update))


def test_a_bar_is_one_picture_that_changes() -> None:
    shell, seconds = Publisher(), iter([0.0, 0.1, 0.3])
    bar = Bar(shell, "units", lambda: next(seconds))
    for number in range(3):
        bar.update(number, 1200, HOSTILE)
    bar.close(1200, 1200)
    texts = [data["text/plain"] for data, _, _ in shell.shown]
    assert texts == [f"units 0/1,200 {HOSTILE}", f"units 2/1,200 {HOSTILE}", "units 1,200/1,200"]
    assert [again for _, _, again in shell.shown] == [False, True, True]
    assert len({name for _, name, _ in shell.shown}) == 1
    assert all(HOSTILE not in data["text/html"] for data, _, _ in shell.shown)
    assert '<progress value="2" max="1200">' in shell.shown[1][0]["text/html"]


def test_conformance_in_a_notebook() -> None:
    shell = Publisher()
    report = extension.run_suite(shell, "echo:0 Relu")
    assert report.outcomes and "ECHO:0" in shown.of_report(report)
    count = len(report.outcomes)
    assert shell.shown[-1][0]["text/plain"] == f"units {count}/{count}"
    for line, said in (("", "wants a device"), ("ech:0", "ech"), ("echo:0 Relo", "'Relo'")):
        with pytest.raises((ValueError, LookupError), match=said):
            extension.run_suite(shell, line)


def test_long_lists_are_counted() -> None:
    parts = [tf.constant(1.0, name="part") for _ in range(40)]
    assert "and 28 more" in shown.of_operation(tf.add_n(parts).op)


def test_what_is_shown_is_there() -> None:
    import importlib

    for (module, name), show in extension.SHOWN.items():
        assert hasattr(importlib.import_module(module), name)
        assert callable(show)


def test_an_unknown_option_of_the_magic() -> None:
    with pytest.raises(ValueError, match=r"%%tf1 does not know --fast; it takes --no-legacy"):
        extension.run_cell(None, "--fast", "")
