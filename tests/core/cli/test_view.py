"""`opdock view`: pages of graphs, SavedModels and traces, written and served."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import opdock as tf
from opdock.cli._served import Served
from opdock.cli.main import main


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["view", *map(str, words)], catch_exceptions=False)


def views(page: Path) -> list[dict[str, Any]]:
    told = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert told is not None
    found = json.loads(told[1])["views"]
    assert isinstance(found, list)
    return found


def rows(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["node"]: row for row in view["rows"]}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    with tf.Graph().as_default() as made:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        tf.nn.relu(tf.matmul(x, tf.ones([2, 2]), name="product"), name="out")
    path = tmp_path / "graph.pb"
    path.write_bytes(made.as_graph_def().SerializeToString())
    return path


def test_a_graph(graph: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    told = run(graph, "-o", page, "--time", "--feed", "x=3,2")
    assert told.exit_code == 0
    assert told.output.startswith(f"{page}: ")
    (view,) = views(page)
    assert view["title"] == "graph.pb"
    assert rows(view)["product"]["outputs"] == ["float32 [3,2]"]
    assert rows(view)["product"]["us"] > 0
    assert view["spans"]
    assert "line" not in rows(view)["product"]  # no line of the user's made it


def test_a_graph_on_two_devices(graph: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(graph, "-o", page, "--device", "cpu:0", "--device", "echo:0").exit_code == 0
    a, b = views(page)
    assert (a["title"], b["title"]) == ("graph.pb on cpu:0", "graph.pb on echo:0")
    assert rows(a)["product"]["device"].endswith("CPU:0")
    assert rows(b)["product"]["device"].endswith("ECHO:0")
    assert "copy" in {row["how"] for row in b["rows"]}


def test_a_graph_as_written_and_in_text(graph: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "page.html", tmp_path / "graph.pbtxt"
    text.write_text(str(tf.GraphDef.FromString(graph.read_bytes())), encoding="utf-8")
    assert (
        run(graph, text, "--as-written", "-o", page, "--title", "x", "--title", "y").exit_code == 0
    )
    a, b = views(page)
    assert (a["title"], b["title"]) == ("x", "y")
    assert a["rows"] == b["rows"]
    assert {row["op"] for row in a["rows"]} == {"Placeholder", "Const", "MatMul", "Relu"}


def test_a_saved_model(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 2], name="x")
        y = tf.matmul(x, tf.get_variable("w", [2, 2]), name="y")
        tf.exp(x, name="unwanted")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    assert run(tmp_path / "model", "-o", tmp_path / "page.html", "--time").exit_code == 0
    (view,) = views(tmp_path / "page.html")
    assert {"w", "y"} <= rows(view).keys()
    assert "unwanted" not in rows(view)
    assert run(tmp_path / "model", "-o", tmp_path / "page.html", "--as-written").exit_code == 0
    assert "unwanted" in rows(views(tmp_path / "page.html")[0])


def test_a_trace(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(tf.matmul(x, x, name="p"), {x: [[1, 2], [3, 4]]}, options, metadata)
    file = tmp_path / "run"
    for data in (metadata, metadata.step_stats):
        file.write_bytes(data.SerializeToString())
        assert run(file, "-o", tmp_path / "page.html").exit_code == 0
        assert rows(views(tmp_path / "page.html")[0])["p"]["us"] > 0
    told = run(file, "-o", tmp_path / "other.html", "--device", "cpu:0")
    assert told.exit_code == 2
    assert "is a recorded run: it cannot be placed on cpu:0" in told.output
    writer = tf.summary.FileWriter(str(tmp_path / "log"))
    for tag in ("first", "second"):
        writer.add_run_metadata(metadata, tag)
    writer.close()
    (events,) = (tmp_path / "log").iterdir()
    assert run(events, "--tag", "first", "-o", tmp_path / "page.html").exit_code == 0
    told = run(events, "--tag", "third", "-o", tmp_path / "page.html")
    assert told.exit_code == 2
    assert "has no run 'third'; it has: first, second" in told.output


def test_the_graphs_that_training_leaves(tmp_path: Path) -> None:
    """In event files, their folder, and beside checkpoints."""
    log, meta = tmp_path / "log", tmp_path / "model.meta"
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        tf.multiply(v, 2.0, name="twice")
        tf.summary.FileWriter(str(log), graph).close()
        tf.train.export_meta_graph(str(meta))
    (events,) = log.iterdir()
    for file in (events, log, meta):
        for words in ((), ("--as-written",)):
            told = run(file, "-o", tmp_path / "page.html", *words)
            assert told.exit_code == 0, told.output
            assert "twice" in rows(views(tmp_path / "page.html")[0])


def test_what_cannot_be_shown(graph: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x00\xff no graph")
    for words, status, said in [
        ([wrong], 2, "holds no GraphDef"),
        ([tmp_path], 2, "SavedModel"),
        ([graph, "--device", "what"], 2, "'what' is no device name"),
        ([graph, "--device", "gpu:7", "--no-soft"], 2, "gpu:7"),
        ([graph, graph, graph], 2, "at most two programs"),
        ([graph, "--title", "a", "--title", "b"], 2, "--title is given 2 times for 1 programs"),
        ([graph, "--fetch", "nowhere"], 2, "nowhere"),
    ]:
        told = run(*words, "-o", tmp_path / "page.html")
        assert told.exit_code == status, told.output
        assert said.lower() in told.output.lower()
    assert not (tmp_path / "page.html").exists()


def test_the_page_is_served_to_this_machine_alone() -> None:
    with Served("<p>page</p>", 0) as served:
        thread = threading.Thread(target=served.wait)
        thread.start()
        try:
            with urllib.request.urlopen(served.address) as answer:
                assert answer.read() == b"<p>page</p>"
            for path, host in (("etc/passwd", None), ("", "elsewhere.example:80")):
                request = urllib.request.Request(f"{served.address}{path}")
                if host:
                    request.add_header("Host", host)
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    urllib.request.urlopen(request)
        finally:
            served.stop()
            thread.join()
