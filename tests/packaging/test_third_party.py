"""A backend from elsewhere: echo's wheel beside core's in an empty environment, and conformance.

The device and programs that stay on it need nothing but those two wheels. What a device does not do
(for echo a cast to bfloat16, at level L1 already) falls back to a CPU backend, as any user's
programs would; for the suite its wheel joins them.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, build_wheel, empty_environment, install, run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]
OPDOCK = ("-m", "opdock.cli.main")
FOLDERS = (Path("core"), Path("plugins/echo"), Path("backends/cpu"))
Wheels = Callable[[Path], Path]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, wheel: Wheels) -> Path:
    """The interpreter of an environment with opdock-core and opdock-echo alone."""
    python = empty_environment(tmp_path_factory.mktemp("stranger"))
    for folder in FOLDERS[:2]:
        install(python, wheel(folder))
    return python


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, wheel: Wheels) -> Path:
    """The same with opdock-cpu."""
    python = empty_environment(tmp_path_factory.mktemp("user"))
    for folder in FOLDERS:
        install(python, wheel(folder))
    return python


def backends(python: Path) -> dict[str, str]:
    """The state of each backend that `opdock doctor` lists."""
    report = json.loads(run(python, *OPDOCK, "doctor", "--json"))
    return {p["name"]: p["state"] for p in report["plugins"] if p["group"] == "opdock.backends"}


def test_it_is_the_only_backend(stranger: Path) -> None:
    assert set(backends(stranger)) == {"echo"}
    where = run(stranger, "-c", "import opdock, opdock_echo; print(opdock_echo.__file__)")
    assert ROOT not in Path(where.strip()).parents


def test_the_device_conforms_alone(stranger: Path) -> None:
    run(stranger, *OPDOCK, "conformance", "--device", "echo:0", "--level", "L0")


def test_it_conforms_at_the_first_levels(user: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ("--level", "L0", "--level", "L1", "--json", str(report))
    run(user, *OPDOCK, "conformance", "--device", "echo:0", *words)
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["levels"]["L1"]["passed"] == found["levels"]["L1"]["claimed"] == 26
    assert found["levels"]["L0"]["failed"] == 0
    assert found["device"]["distribution"] == "opdock-echo"


def test_programs_run_without_any_other_backend(stranger: Path) -> None:
    program = """
import opdock as tf
x = tf.placeholder(tf.float32, [2, 2])
with tf.device("/device:ECHO:0"):
    w = tf.Variable(tf.ones([2, 2]))
    y = tf.nn.relu(tf.matmul(x, w) - 1.0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(y, {x: [[1.0, 2.0], [0.0, 0.0]]}).tolist())
"""
    assert run(stranger, "-c", program).strip() == "[[2.0, 2.0], [0.0, 0.0]]"


@pytest.mark.prove
def test_it_conforms_wholly(user: Path) -> None:
    """The same units pass as in the workspace: the committed baseline holds them."""
    assert set(backends(user)) == {"cpu", "echo"}
    baseline = ROOT / "plugins" / "echo" / "conformance.json"
    run(user, *OPDOCK, "conformance", "--device", "echo:0", "--baseline", str(baseline))


def test_the_build_needs_no_workspace(tmp_path: Path) -> None:
    """The sources of a third party lie anywhere."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "plugins" / "echo", copy, ignore=shutil.ignore_patterns("__pycache__"))
    names = zipfile.ZipFile(build_wheel(copy, tmp_path / "out")).namelist()
    assert "opdock_echo/kernels.py" in names
    assert any(n.endswith("entry_points.txt") for n in names)
