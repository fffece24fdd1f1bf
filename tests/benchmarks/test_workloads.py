"""Every workload gives the right answer at its tiny size, and a wrong one is found."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"
NAMES = [
    "run_overhead",
    "dispatch_chain",
    "wide_graph",
    "graph_build",
    "gradients_build",
    "elementwise_fusion",
    "softmax_xent",
    "reduce",
    "logreg_train",
    "mlp_train_small",
    "mlp_train_large",
    "convnet_train",
    "bn_fused",
    "bn_unfused",
    "lstm_loop",
    "lstm_loop_grad",
    "resnet_infer_b1",
    "resnet_infer_b8",
    "matmul_float",
    "matmul_int8",
    "conv_float",
    "conv_int8",
    "input_examples",
    "input_images",
    "input_slices",
    "input_lines",
    "input_train",
    "input_none",
    "input_train_large",
    "input_none_large",
]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RUN), *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_every_workload_is_right() -> None:
    done = command("--smoke")
    assert done.stdout.splitlines() == [f"{name}: opdock right" for name in NAMES], done.stderr
    assert done.returncode == 0


def test_on_another_device() -> None:
    done = command("--smoke", "--device", "echo:1", "elementwise_fusion", "logreg_train")
    assert done.stdout.splitlines() == [
        "elementwise_fusion: opdock right",
        "logreg_train: opdock right",
    ], done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_answers_depend_on_all_inputs(name: str) -> None:
    """An answer that ignored a parameter could not tell that a program does."""
    from workloads.agree import apart, digest
    from workloads.table import ALL

    workload = ALL[name]
    folder = {"folder": ""} if workload.files else {}
    data = workload.inputs({**workload.smoke, **folder})
    if hasattr(data, "batches"):
        data.batches = data.batches[:3]  # those that the checked steps see
    before = [digest(a) for a in workload.answer(data)]
    arrays = [a for a in leaves(vars(data)) if a.dtype == np.float32]
    assert arrays or set(workload.smoke) <= {"ops", "layers"}
    for array in arrays:
        kept = array.copy()
        array += np.random.RandomState(0).uniform(size=array.shape).astype(np.float32)
        after = [digest(a) for a in workload.answer(data)]
        assert max(map(apart, before, after)) > workload.tolerance, array.shape
        array[...] = kept


def leaves(value: object) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [a for v in value.values() for a in leaves(v)]
    return [a for v in value for a in leaves(v)] if isinstance(value, list | tuple) else []


def test_digests_apart() -> None:
    from workloads.agree import apart, digest

    a = digest([np.arange(6.0).reshape(2, 3), None, 1.0])
    assert apart(a, digest([np.arange(6.0).reshape(2, 3), 1.0])) == 0
    assert apart(a, digest([np.arange(6.0).reshape(2, 3), 1.5])) == pytest.approx(1 / 3)
    assert apart(a, digest([np.arange(6.0).reshape(3, 2), 1.0])) == np.inf
    assert apart(a, digest([np.arange(6.0).reshape(2, 3)])) == np.inf
    assert apart(a, digest([np.arange(6.0).reshape(2, 3), np.nan])) == np.inf
    big = np.ones(10_000)
    big[1] = 2.0  # no number of the sample, but of the sum
    assert apart(digest(np.ones(10_000)), digest(big)) > 0


def test_wrong_answers_get_no_figure() -> None:
    """What a worker would report of a wrong result, an error, a peer that differs."""
    import compare
    from workloads.table import ALL

    workload = replace(ALL["reduce"], tolerance=1e-3)
    assert compare.verdict({"apart": 1e-4}, workload) == ""
    assert "1.0e-02 from the right answer" in compare.verdict({"apart": 1e-2}, workload)
    assert "infe" not in compare.verdict({"apart": float("inf")}, workload)
    assert compare.verdict({"apart": float("inf")}, workload)
    assert compare.verdict({"error": "ValueError: x"}, workload) == "ValueError: x"
    heads = {n: {"values": [[[[], [v], v]]]} for n, v in (("opdock", 1.0), ("torch", 1.1))}
    libraries = {"opdock": {"step": 1.0}, "torch": {"step": 1.0}}
    compare.disagree(libraries, heads, workload)
    assert "wrong" not in libraries["opdock"]
    assert libraries["torch"]["wrong"] == "9.1e-02 from opdock's result"


class Scripted:
    """A worker whose answers are known before."""

    def __init__(self, step: float, last: float = 1.0, kept: bool = True) -> None:
        self.step, self.last, self.kept = step, last, kept

    def ask(self, do: str, **words: object) -> dict[str, object]:
        return {
            "run": {"times": [self.step] * 3},
            "finish": {"kept": self.kept, "last": [[[], [self.last], self.last]], "peak": 5},
            "smoke": {"apart": 0.0},
        }[do]


def test_ratios_are_of_the_rounds() -> None:
    import compare

    effort = compare.Effort(rounds=3, seconds=0, least=1, warm=0, pause=0)
    workers = {"opdock": Scripted(0.25), "torch": Scripted(0.5)}
    times, ratios = compare.turns(effort, workers, {"opdock": {}, "torch": {}}, {})
    assert ratios == {"torch": {"median": 2.0, "low": 2.0, "high": 2.0}}
    assert times == {"opdock": [0.25] * 9, "torch": [0.5] * 9}


@pytest.mark.parametrize(
    ("worker", "wrong"),
    [
        (Scripted(1.0), None),
        (Scripted(1.0, last=1.5), "the last step gave another result than the first"),
        (Scripted(1.0, kept=False), "a later step changed an earlier result"),
    ],
)
def test_the_end_is_checked_too(worker: Scripted, wrong: str | None) -> None:
    import compare
    from workloads.table import ALL

    head = {"build": 1.0, "first": 2.0, "values": [[[[], [1.0], 1.0]]]}
    assert compare.finished(worker, head, ALL["reduce"]).get("wrong") == wrong


def test_a_worker_that_fails_says_so() -> None:
    import compare

    side = compare.Side("opdock", sys.executable)
    worker = compare.Worker(side, compare.Setting((side,), threads=1))
    try:
        assert worker.hello["version"]
        assert "KeyError" in worker.ask("start", workload="none", sizes={})["error"]
        sizes = {"rows": 3, "columns": 4}
        head = worker.ask("start", workload="reduce", sizes=sizes)
        assert [shape for shape, *_ in head["values"][0]] == [[4], [3], []] * 3
        end = worker.ask("finish")
        assert end["kept"]
        assert end["planned"] >= 0
        worker._process.kill()
        assert worker.ask("finish")["error"] == "ended with status -9: "
    finally:
        worker.close()


def test_curves_check_the_gradient() -> None:
    import compare
    import curves

    side = compare.Side("opdock")
    (point,) = curves.graph_curve(compare.Setting((side,), threads=1), (40,))
    assert set(point["libraries"]["opdock"]) == set(curves.PHASES)
    assert curves._wrong([0.0, 0.0, 0.0], 40).endswith("from the right gradient")


def test_a_program_that_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import worker
    from workloads.table import ALL

    library = worker.Library("opdock", threads=1, device=None)
    right = ALL["logreg_train"]
    assert library.smoke("logreg_train")["apart"] < right.tolerance

    def answer(data: object) -> list[object]:
        data.rate *= 1.01
        return right.answer(data)

    monkeypatch.setitem(ALL, "logreg_train", replace(right, answer=answer))
    assert library.smoke("logreg_train")["apart"] > right.tolerance


def test_a_worker_that_hangs_is_ended() -> None:
    import compare

    side = compare.Side("opdock")
    worker = compare.Worker(side, compare.Setting((side,), threads=1))
    try:
        assert "error" not in worker.ask("start", workload="run_overhead", sizes={})
        worker.patience = 0.2
        assert worker.ask("run", seconds=60, least=1)["error"] == "no answer within 0 s"
    finally:
        worker.close()


@pytest.mark.parametrize(
    "library, lacks",
    [
        # It reads no Examples, and no JPEG files without a further library.
        ("torch", {n for n in NAMES if n.startswith("input_")} - {"input_slices", "input_lines"}),
        ("jax", {name for name in NAMES if name.startswith("input_")}),  # it brings no pipelines
    ],
)
def test_twins_are_complete(library: str, lacks: set[str]) -> None:
    """Read, not imported: the peers are not installed here.

    Building graphs is TensorFlow's own, and so are sums of 8-bit products.
    """
    tree = ast.parse((RUN.parent / "twins" / f"{library}_twin.py").read_text(encoding="utf-8"))
    tables = [n.value for n in tree.body if isinstance(n, ast.AnnAssign) and n.target.id == "TWINS"]
    keys = [key.value for key in tables[0].keys]
    own = {"graph_build", "gradients_build", "matmul_int8", "conv_int8"}
    assert sorted(keys) == sorted(set(NAMES) - own - lacks)
