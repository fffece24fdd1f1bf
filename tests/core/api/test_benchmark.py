"""`tf.test.Benchmark`: what it times, what it reports, and when it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.api.benchmark import REPORT_PREFIX, benchmarks_main
from opdock.io import protos


class Timed(tf.test.Benchmark):
    def benchmark_square(self) -> dict[str, Any]:
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32)
            return self.run_op_benchmark(
                sess, tf.square(x), {x: [1.0, 2.0]}, min_iters=3, store_trace=True, mbs=1,
                extras={"note": "n"},
            )  # fmt: skip

    def benchmark_told(self) -> None:
        self.report_benchmark(
            iters=7, name="told/well", metrics=[{"name": "loss", "value": 2, "max_value": 3}]
        )


def test_an_op_is_timed_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    values = Timed().benchmark_square()
    assert values["iters"] == 3 and values["wall_time"] > 0 and values["throughput"] > 0
    assert json.loads(values["extras"]["full_trace_chrome_format"])["traceEvents"]
    told = capsys.readouterr().out
    assert 'name: "Timed.benchmark_square"' in told and 'string_value: "n"' in told
    assert "traceEvents" not in told


def test_results_go_into_files_if_asked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv(REPORT_PREFIX, f"{tmp_path}/r.")
    argv = ["program", "--benchmarks=test_benchmark.Timed.benchmark_told$"]
    benchmarks_main(lambda: pytest.fail("these are the tests"), argv)
    assert argv == ["program"]
    (entry,) = protos.BenchmarkEntries.FromString(
        (tmp_path / "r.Timed.told__well").read_bytes()
    ).entry  # fmt: skip
    assert entry.iters == 7 and entry.metrics[0].max_value.value == 3
    with pytest.raises(OSError, match="already exists"):
        Timed().benchmark_told()


def test_what_is_no_report_is_refused() -> None:
    benchmark = tf.test.Benchmark()
    with pytest.raises(ValueError, match="Unable to determine calling"):
        benchmark.report_benchmark()
    for wrong, words in (({"extras": 1}, "a dict"), ({"metrics": {}}, "a list")):
        with pytest.raises(TypeError, match=words):
            benchmark.report_benchmark(name="n", **wrong)
    with pytest.raises(TypeError, match="'value' field"):
        benchmark.report_benchmark(name="n", metrics=[{"name": "a"}])
    ran = []
    benchmarks_main(lambda: ran.append(1), ["program"])
    assert ran
    rewriting = tf.test.benchmark_config().graph_options.rewrite_options
    assert rewriting.dependency_optimization == rewriting.OFF
