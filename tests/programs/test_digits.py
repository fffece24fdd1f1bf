"""The demonstration: stopped or killed it goes on, and TensorBoard shows what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import opdock as tf
from opdock.io.checkpoint_v2 import BundleReader
from tools import pictures

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"
STEPS = 12  # an epoch of batches of 128
# Runs the example, with a signal to itself at a step.
DISTURBED = """
import os, runpy, signal, sys
from rich.progress import Progress

path, name, moment, *sys.argv[1:] = sys.argv[1:]
update, left = Progress.update, int(moment)

def counted(*args, **kwargs):
    global left
    update(*args, **kwargs)
    left -= 1
    if not left:
        signal.raise_signal(getattr(signal, name))

Progress.update = counted
runpy.run_path(path, run_name="__main__")
"""


def run(logdir: Path, *options: str, disturbed: tuple[str, int] = ("SIGINT", 0)) -> Any:
    name, moment = disturbed
    command = [sys.executable, "-c", DISTURBED, str(EXAMPLE), name, str(moment)]
    command += ["--epochs", "2", "--batch", "128", "--logdir", str(logdir), *options]
    # Code that is ready at another step in each run would round in another way.
    environ = {**os.environ, "OPDOCK_JIT": "off", "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves that nobody disturbs."""
    logdir = tmp_path_factory.mktemp("calm")
    done = run(logdir)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("test accuracy: ")
    assert f"tensorboard --logdir {logdir}" in done.stdout
    return logdir


def weights(logdir: Path) -> dict[str, np.ndarray]:
    with BundleReader(str(logdir / f"model-{2 * STEPS}")) as reader:
        return {name: reader.get(name) for name in reader.names()}


def test_it_goes_on_after_ctrl_c_and_after_a_kill(calm: Path, tmp_path: Path) -> None:
    stopped = run(tmp_path, disturbed=("SIGINT", 5))
    assert stopped.returncode == 1
    assert stopped.stderr.splitlines()[-1] == "stopped at step 5; --resume goes on from there"
    killed = run(tmp_path, "--resume", disturbed=("SIGKILL", STEPS + 2))
    assert killed.returncode == -9
    assert not list(tmp_path.glob(f"model-{2 * STEPS}*"))
    done = run(tmp_path, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"going on from step {STEPS}" in done.stdout
    expected, found = weights(calm), weights(tmp_path)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name


@pytest.fixture(scope="module")
def board(calm: Path) -> Iterator[str]:
    """The address of a TensorBoard that shows the run; it has read all events."""
    with pictures.board(calm) as url:
        while "digits/image/0" not in fetch(url, "data/plugin/images/tags").get(".", {}):
            pass  # it has not come to the end of the file
        yield url


def fetch(url: str, path: str, **query: str) -> Any:
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(query)}") as answer:
        content = answer.read()
    return json.loads(content) if answer.headers["Content-Type"] == "application/json" else content


def test_tensorboard_shows_scalars_and_histograms(board: str) -> None:
    for tag in ("test/loss", "test/accuracy"):
        points = fetch(board, "data/plugin/scalars/scalars", run=".", tag=tag)
        assert [step for _, step, _ in points] == [STEPS, 2 * STEPS]
    assert points[-1][2] > 0.5
    tag = "weights/hidden1/kernel"
    shown = fetch(board, "data/plugin/histograms/histograms", run=".", tag=tag)
    assert [step for _, step, _ in shown] == [STEPS, 2 * STEPS]
    assert sum(count for _, _, count in shown[-1][2]) == 64 * 256


def test_tensorboard_shows_images(board: str) -> None:
    (image,) = fetch(board, "data/plugin/images/images", run=".", tag="digits/image/0", sample="0")
    assert image["step"] == 2 * STEPS
    png = fetch(f"{board}data/plugin/images/individualImage?{image['query']}", "")
    assert png.startswith(b"\x89PNG")


def test_tensorboard_shows_the_graph(board: str) -> None:
    graph = fetch(board, "data/plugin/graphs/graph", run=".", conceptual="false").decode()
    assert 'name: "hidden2/MatMul"' in graph


def test_tensorboard_colors_the_graph_by_device_and_time(board: str, calm: Path) -> None:
    tag = f"test at step {2 * STEPS}"
    told = fetch(board, "data/plugin/graphs/info")["."]["tags"][tag]
    assert told["profile"]
    text = fetch(board, "data/plugin/graphs/run_metadata", run=".", tag=tag).decode()
    (device,) = text_format.Parse(text, tf.RunMetadata()).step_stats.dev_stats
    assert device.device.endswith("/device:CPU:0")
    times = {node.node_name: node.op_end_rel_micros for node in device.node_stats}
    assert {"hidden2/Relu", "logits/BiasAdd"} <= set(times)
    (written,) = (
        event.tagged_run_metadata.run_metadata
        for file in calm.glob("events.out.tfevents.*")
        for event in tf.train.summary_iterator(str(file))
        if event.tagged_run_metadata.tag == tag
    )
    (kept,) = tf.RunMetadata.FromString(written).step_stats.dev_stats
    assert times == {node.node_name: node.op_end_rel_micros for node in kept.node_stats}
    # The graph has the device of what is pinned to one; the rest is colored by the step.
    graph = fetch(board, "data/plugin/graphs/graph", run=".", conceptual="false").decode()
    assert 'device: "/device:CPU:0"' in graph


def test_tensorboard_projects_the_digits(board: str) -> None:
    (shown,) = fetch(board, "data/plugin/projector/info", run=".")["embeddings"]
    assert shown["tensorShape"] == [359, 128]
    name = shown["tensorName"]
    points = fetch(board, "data/plugin/projector/tensor", run=".", name=name)
    assert len(points) == 359 * 128 * 4
    labels = fetch(board, "data/plugin/projector/metadata", run=".", name=name)
    assert len(labels.split()) == 359
