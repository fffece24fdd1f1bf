"""What `tf.profiler.advise` tells of steps."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def step(*records: tuple[str, str, int, int]) -> Any:
    """A RunMetadata: device, node, start and length of each record."""
    made = tf.RunMetadata()
    for device, name, start, length in records:
        made.step_stats.dev_stats.add(device=device).node_stats.add(
            node_name=name, all_start_micros=start, op_end_rel_micros=length
        )
    return made


def reports(told: Any, checker: str) -> list[str]:
    return list(told.checkers[f"{checker}Checker"].reports)


def test_what_took_most_is_told_by_type_scope_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        with tf.name_scope("inner"):
            y = tf.exp(x, name="exp")
        tf.tanh(y, name="tanh")
        run = step((HOST, "inner/exp", 10, 2000), (HOST, "tanh", 3000, 6000))
        types, scopes, lines = reports(tf.profiler.advise(graph, run), "ExpensiveOperation")
    assert types.splitlines()[:2] == [
        "top 1 operation type: Tanh, cpu: 6.00ms, accelerator: 0us, total: 6.00ms (75.00%)",
        "top 2 operation type: Exp, cpu: 2.00ms, accelerator: 0us, total: 2.00ms (25.00%)",
    ]
    assert scopes.splitlines()[1] == (
        "top 2 graph node: inner, cpu: 2.00ms, accelerator: 0us, total: 2.00ms"
    )
    assert "test_advice.py" in lines.splitlines()[0]
    assert "total: 6.00ms" in lines.splitlines()[0]
    assert "\nExpensiveOperationChecker:\ntop 1 operation type: Tanh" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("length", "word"), [(30, "low utilization: 0.30"), (80, " utilization: 0.80")]
)
def test_how_busy_an_accelerator_was(length: int, word: str) -> None:
    with tf.Graph().as_default() as graph:
        tf.tanh(tf.exp(tf.placeholder(tf.float32, [2]), name="exp"), name="tanh")
        profiler = tf.profiler.Profiler(graph)
        profiler.add_step(0, step(
            (GPU, "exp", 100, 1), (f"{GPU}/stream:all", "exp", 100, length // 2),
            (GPU, "tanh", 199, 1), (f"{GPU}/stream:all", "tanh", 200 - length // 2, length // 2),
        ))  # fmt: skip
        told = profiler.advise({"AcceleratorUtilizationChecker": {}, "JobChecker": {}})
    assert list(told.checkers) == ["AcceleratorUtilizationChecker"]
    (report,) = reports(told, "AcceleratorUtilization")
    assert report.startswith("device: /job:localhost") and report.endswith(word)


@pytest.mark.parametrize("fused", [True, False])
def test_batch_normalization_of_single_ops_is_told(fused: bool) -> None:
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [2, 4, 4, 3])
        tf.layers.batch_normalization(images, name="BatchNorm", fused=fused)
        assert bool(reports(tf.profiler.advise(graph), "Operation")) != fused


def test_without_a_step_nothing_took_time() -> None:
    with tf.Graph().as_default() as graph:
        tf.tanh(tf.placeholder(tf.float32, [2]))
        assert reports(tf.profiler.advise(graph), "ExpensiveOperation") == []
