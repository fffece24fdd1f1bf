"""The command line's refusals, the tables, the page's markers, the plots: from figures made up."""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ABOUT = {
    "processor": "A CPU",
    "cores": 2,
    "python": "3.11.0",
    "numpy": "2.0",
    "opdock": "0.1.0",
    "threads": 2,
    "device": None,
    "date": "2020-02-02",
    "command": "make bench",
    "full": True,
}
OURS = {"step": 0.002, "first": 0.5, "peak": 3e8, "planned": 12e6}
RATIO = {"median": 1.5, "low": 1.4, "high": 1.75}
PHASES = {"gradients": 1e-3, "compile": 1e-3, "run": 1e-4}
DATA: dict[str, Any] = {
    "about": ABOUT,
    "basics": [
        ["an add", 2.5, "µs", 15.0],
        ["two", 1234.5, "µs", 200.0],
        ["three", 1.0, "s", None],
    ],
    "imports": {
        "opdock": {"version": "0.1.0", "seconds": 0.01, "ready": 0.1, "resident": 4e7},
        "torch": {"version": "2.9", "seconds": 1.0, "ready": 1.2, "resident": 3e8},
    },
    "workloads": [
        {
            "name": "good",
            "about": "a good one",
            "libraries": {"opdock": OURS, "torch": {"step": 0.003, "first": 0.1, "peak": 5e8}},
            "ratios": {"torch": RATIO},
        },
        {
            "name": "bad",
            "about": "a bad one",
            "libraries": {"opdock": OURS, "torch": {"step": 0.001, "wrong": "1.0e-01 off"}},
            "ratios": {},
        },
    ],
    "curves": {
        "graph": [
            {"size": s, "libraries": {"opdock": {**PHASES, "build": s * 1e-5}}} for s in (100, 1000)
        ],
        "batch": [{"size": b, "libraries": {"opdock": {"step": b * 1e-4}}} for b in (1, 64)],
    },
}


@pytest.fixture
def data() -> dict[str, Any]:
    return copy.deepcopy(DATA)


def main(*words: str) -> int:
    import run

    return run.main([str(w) for w in words])


def page(folder: Path) -> Path:
    path = folder / "page.md"
    names = ("make bench", "make bench: workloads", "make bench: curves")
    body = "\n\n".join(f"<!-- begin: {n} -->\nold {n}\n<!-- end: {n} -->\nkept" for n in names)
    path.write_text(f"# Page\n\n{body}\n", encoding="utf-8")
    return path


def kept(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "figures.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_tables_go_between_the_markers(tmp_path: Path, data: dict[str, Any]) -> None:
    path = page(tmp_path)
    assert main("--data", kept(tmp_path, data), "--write", path) == 0
    text = path.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.count("kept") == 3
    assert text.startswith("# Page\n")
    assert "| an add | 2.5 µs | < 15 µs | met |" in text
    assert "| two | 1,234 µs | < 200 µs | missed |" in text
    assert "| good | 2 | 3 | 1.50 (1.40–1.75) |" in text
    assert "| bad | 2 | wrong |  |" in text
    assert "| geometric mean |  |  | 1.50 |" in text
    assert "| good | 500 | 100 | 300 | 500 | 12 |" in text
    assert "- bad, torch: 1.0e-01 off" in text
    assert "- good: a good one" in text
    assert "| torch | 2.9 | 1,000 | 1,200 | 300 |" in text
    assert "| 1,000 | 10 | 1 | 1 | 0.1 |" in text
    assert "| 64 | 6.4 |" in text
    assert text.count("A CPU, 2 cores · Python 3.11.0, NumPy 2.0, opdock 0.1.0") == 3
    again = path.read_bytes()
    assert main("--data", kept(tmp_path, data), "--write", path) == 0
    assert path.read_bytes() == again


def test_a_short_run_replaces_the_basics_only(
    tmp_path: Path, data: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data["about"]["full"] = False
    path = page(tmp_path)
    main("--data", kept(tmp_path, data), "--write", path)
    text = path.read_text(encoding="utf-8")
    assert "old make bench: workloads" in text
    assert "old make bench: curves" in text
    assert "| an add |" in text
    assert "| good |" in capsys.readouterr().out


def test_a_device_has_sections_of_its_own(tmp_path: Path, data: dict[str, Any]) -> None:
    data["about"]["device"] = "/device:CUDA:0"
    data["workloads"][0]["libraries"]["opdock"] |= {"elsewhere": "1 of 9", "device_peak": 7e6}
    del data["basics"]
    path = page(tmp_path)
    for _ in range(2):
        main("--data", kept(tmp_path, data), "--write", path)
        text = path.read_text(encoding="utf-8")
        assert text.count("old") == 3
        assert text.count("## Workloads on /device:cuda:0") == 1
        assert text.count("<!-- begin: make bench: curves on /device:CUDA:0 -->") == 1
        assert "| good | 500 | 100 | 300 | 500 | 12 | 7 | 1 of 9 |" in text


def test_a_page_of_its_own(tmp_path: Path, data: dict[str, Any]) -> None:
    main("--data", kept(tmp_path, data), "--markdown", tmp_path / "new.md")
    text = (tmp_path / "new.md").read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks\n\nA CPU")
    assert "| good | 2 | 3 |" in text


def test_missing_markers_are_told(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Page\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="lacks the markers <!-- begin: make bench -->"):
        main("--data", kept(tmp_path, data), "--write", path)
    assert path.read_text(encoding="utf-8") == "# Page\n"


def test_exit_status(tmp_path: Path, data: dict[str, Any]) -> None:
    words = ("--data", kept(tmp_path, data))
    assert main(*words) == 0  # a peer's wrong answer and a missed target are no error
    assert main(*words, "--strict") == 1
    data["workloads"][0]["libraries"]["opdock"] = {"wrong": "KeyError: x"}
    assert main("--data", kept(tmp_path, data)) == 1


def test_the_documentation_has_the_markers() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
    text = docs.read_text(encoding="utf-8")
    for name in ("make bench", "make bench: workloads", "make bench: curves"):
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        assert text.count(begin) == text.count(end) == 1
        assert text.index(begin) < text.index(end)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "nothing is called nothing; there are import_time"),
        (["--peer", "numpy=python3"], "write LIBRARY=PYTHON with a library of tensorflow"),
        (["--peer", "torch"], "write LIBRARY=PYTHON"),
        (["--peer", "torch=no/such/python"], "torch: 'no/such/python' is no program"),
        (["--peer", "jax=python3", "--peer", "jax=python3"], "each peer once"),
        (["--device", "cpu:0", "run_add"], "--device is about workloads and curves: run_overhead"),
        (["--device", "cpu:0", "graph_build"], "--device is about workloads and curves"),
        (["--peer-gpu"], "--peer-gpu is about peers"),
        (["--busy", "burn"], "--busy is about ratios to peers"),
        (["--busy", "quota", "--smoke", "--peer", f"torch={sys.executable}"], "into no page"),
        (["--threads", "0"], "'0' is no count from 1 on"),
        (["--threads", "two"], "'two' is no count from 1 on"),
        (["--write", "no/such/page.md"], "there is no page no/such/page.md"),
        (["--write", __file__, "reduce"], "--write replaces whole tables"),
        (["--data", "no/such/figures.json"], "there is no file no/such/figures.json"),
        (["--plot"], "--plot draws beside a page"),
        (["--smoke", "--json", "x.json"], "--smoke has no figures"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(*words)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


def test_plots_name_what_brings_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import options

    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main("--plot", "--markdown", "x.md")
    assert "pip install --group bench" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "message"),
    [("opencl", "'opencl' is no device name"), ("abacus:0", "There is no device 'abacus:0'")],
)
def test_an_unknown_device_is_told(device: str, message: str) -> None:
    with pytest.raises(SystemExit, match=f"--device {device}: .*{message}"):
        main("--smoke", "--device", device)


def test_ratios_alone(data: dict[str, Any]) -> None:
    import report

    text = report.ratios(data["workloads"])
    assert "| good | 1.50 (1.40–1.75) |" in text
    assert "| geometric mean | 1.50 |" in text
    assert "ms" not in text


def test_burning_processes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    import busy

    started, real = [], busy.subprocess.Popen
    monkeypatch.setattr(
        busy.subprocess, "Popen", lambda words: started.append(real(words)) or started[-1]
    )
    with busy.busy("burn", 2):
        assert [p.poll() for p in started] == [None, None]
    assert all(p.poll() is not None for p in started)


def test_tests_run_beside_again_and_again_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import busy

    def pids() -> list[str]:
        return [path.stem for path in tmp_path.glob("*.pid")]

    def runs(pid: str) -> bool:
        stat = Path("/proc", pid, "stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"

    (tmp_path / "test_one.py").write_text(
        "import os, pathlib\n"
        "def test_it():\n"
        "    pathlib.Path(__file__).with_name(f'{os.getpid()}.pid').touch()\n"
    )
    monkeypatch.setattr(busy, "_TESTS", tmp_path)
    with busy.busy("tests", 1):
        while len(pids()) < 2:
            time.sleep(0.01)
    while any(map(runs, pids())):
        time.sleep(0.01)


def test_a_quota_is_the_kernels_or_one_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import busy

    monkeypatch.setattr(busy, "_GROUPS", tmp_path)
    # A folder that is no control group takes what is written to it, and limits nothing.
    before = os.sched_getaffinity(0)
    with busy.one_processor():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
    assert list(tmp_path.iterdir()) == []


def test_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("--list") == 0
    listed = capsys.readouterr().out
    assert "mlp_train_small: layers of (512, 192, 10), batch 48, GradientDescent\n" in listed
    assert "batch_curve: " in listed


def test_commands_hold_no_path_of_a_machine() -> None:
    import options

    page = ["--write", "docs/benchmarks.md"]
    assert options.quoted(page) == "make bench"
    secret = ["--full", "--peer", "torch=/somewhere/python", "--peer=jax=/else/python"]
    said = 'make bench ARGS="--full --peer torch=PYTHON --peer jax=PYTHON"'
    assert options.quoted([*page, *secret]) == said
    other = options.quoted(["mlp*", "--json=/tmp/x.json", "--markdown", "out.md"])
    assert other == "python benchmarks/run.py 'mlp*' --json x.json --markdown out.md"


def test_numbers() -> None:
    from report import number

    found = [number(v) for v in (0.0, 0.00123456, 1.5, 99.9, 100.4, 12345.6)]
    assert found == ["0", "0.00123", "1.5", "99.9", "100", "12,346"]


def test_plots_are_the_same_each_time(tmp_path: Path, data: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib", reason="only `make bench ARGS=--plot` installs Matplotlib")
    drawn = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        path = page(folder)
        main("--data", kept(tmp_path, data), "--write", path, "--plot")
        text = path.read_text(encoding="utf-8")
        assert "![workloads](page/workloads.svg)" in text
        drawn.append([(folder / "page" / f"{k}.svg").read_text() for k in ("workloads", "curves")])
    assert drawn[0] == drawn[1]
    workloads, curves = drawn[0]
    assert "torch, geometric mean 1.50" in workloads
    assert "training step, s" in curves
    data["workloads"][0]["ratios"]["torch"]["median"] = 1.7
    main("--data", kept(tmp_path, data), "--markdown", tmp_path / "three.md", "--plot")
    assert (tmp_path / "three" / "workloads.svg").read_text() != workloads
