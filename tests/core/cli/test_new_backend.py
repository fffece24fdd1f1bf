"""`opdock new-backend`: whole or not at all, and clean by every tool from the first minute."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opdock import errors, plugin
from opdock.cli import new_backend
from opdock.plugin import BaseDevice, Buffer
from opdock.testing.report.next_step import LEVELS, next_step


@pytest.fixture(params=new_backend.STARTS)
def start(request):
    return request.param


@pytest.fixture
def package(tmp_path, start):
    return new_backend.create("my_chip", tmp_path, start)


def run(package, *words, **environ):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPDOCK_", "PYTEST"))}
    return subprocess.run(
        [sys.executable, *words], cwd=package, env=env | environ, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def listing(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_names_agree(package, start):
    assert package.name == "opdock-my-chip"
    compiler = ["src/opdock_my_chip/compiler.py"] if start == "compiler" else []
    assert listing(package) == [
        ".github/workflows/ci.yml", ".gitignore", "README.md", "pyproject.toml",
        "src/opdock_my_chip/__init__.py", *compiler, "src/opdock_my_chip/device.py",
        "src/opdock_my_chip/kernels.py", "src/opdock_my_chip/py.typed",
        "tests/test_conformance.py",
    ]  # fmt: skip
    texts = {name: (package / name).read_text(encoding="utf-8") for name in listing(package)}
    assert not [n for n, t in texts.items() if "@" in t.replace("@v", "").replace("@table", "")
                .replace("@hookimpl", "").replace("@pytest", "")]  # fmt: skip
    assert 'name = "opdock-my-chip"' in texts["pyproject.toml"]
    assert 'my_chip = "opdock_my_chip"' in texts["pyproject.toml"]
    assert "class MyChipDevice" in texts["src/opdock_my_chip/device.py"]
    assert "/device:MY_CHIP:0" in texts["README.md"]
    assert "--device my_chip:0" in texts[".github/workflows/ci.yml"]


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--select", "E,F,I,UP,B,D1,ANN0,ANN2,N"),
        ("format", "--check"),
    ],
    ids=["lint", "format"],
)
def test_linters_find_nothing(package, words):
    isolated = ("--isolated", "--no-cache", "--line-length", "100")
    done = run(package, "-m", "ruff", *words, *isolated, ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_types_are_strict(tmp_path):
    """All starts at once: what takes long are the types of opdock, which they share."""
    made = [new_backend.create(f"{s}_chip", tmp_path, s) for s in new_backend.STARTS]
    core = Path(new_backend.__file__).parents[2]
    words = ("--strict", "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent")
    done = run(tmp_path, "-m", "mypy", *words, *(p / "src" for p in made), MYPYPATH=str(core))
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_tests_are_red_and_say_what_comes_first(package, start):
    """Without the driver's code: the plugin is found, its device opens, and cannot upload."""
    program = (
        "import sys; sys.path.insert(0, 'src')\n"
        "import opdock_my_chip\n"
        "from opdock.plugin import register\n"
        "from opdock.testing.report.next_step import next_step\n"
        "print(next_step('my_chip:0', 'L0'))\n"
        "register(opdock_my_chip)\n"
        "print(next_step('my_chip:0', 'L0'))\n"
        "print(next_step('my_chip:0', 'L1'))\n"
    )
    done = run(package, "-c", program)
    assert done.returncode == 0, done.stderr
    assert "Next, the device (1 of 1):" in done.stdout
    assert "pip install -e ." in done.stdout
    assert "Next, L0/round-trip/float32 (1 of " in done.stdout
    assert "upload must copy a host array into device memory" in done.stdout
    assert "Next, L1/AddV2/float32 (1 of 26):" in done.stdout
    told = {
        "kernels": '@table.binder("AddV2", T={dtypes.float32})',
        "namespace": "the kernel of AddV2(x, y) -> z for float32",
        "compiler": "the kernel of AddV2(x, y) -> z for float32",
    }
    assert told[start] in done.stdout


def test_what_the_device_may_override_is_there(package):
    """Whatever the scaffold names in its words is of the contract, or of a buffer's."""
    tree = ast.parse((package / "src/opdock_my_chip/device.py").read_text(encoding="utf-8"))
    (device,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    named = set(re.findall(r"`(\w+)`", ast.get_docstring(device) or ""))
    assert {"empty", "synchronize", "dtypes"} <= named
    assert [n for n in named if not any(hasattr(c, n) for c in (BaseDevice, Buffer, plugin))] == []


UPLOAD = 'raise NotImplementedError("upload must copy a host array into device memory")'
DOWNLOAD = 'raise NotImplementedError("download must copy a buffer into a host array")'


@pytest.mark.parametrize(
    ("start", "level", "told"),
    [
        ("namespace", "L1", "None"),
        ("kernels", "L1", "Next, L1/AddV2/float32 (1 of 26):"),
        ("compiler", "segments", "compile_segment must trace segment.run"),
    ],
)
def test_two_lines_lead_to_the_next_thing(tmp_path, start, level, told):
    """What each start has to begin with, once the device has memory."""
    package = new_backend.create("my_chip", tmp_path, start)
    device = package / "src" / "opdock_my_chip" / "device.py"
    text = device.read_text(encoding="utf-8")
    for missing, code in (
        (UPLOAD, "return np.array(array)"),
        (DOWNLOAD, "return np.array(buffer)"),
    ):
        assert missing in text
        text = text.replace(missing, code)
    device.write_text(text, encoding="utf-8")
    program = (
        "import sys; sys.path.insert(0, 'src')\n"
        "import opdock_my_chip\n"
        "from opdock.plugin import register\n"
        "from opdock.testing.report.next_step import next_step\n"
        "register(opdock_my_chip)\n"
        f"print(next_step('my_chip:0', {level!r}))\n"
    )
    done = run(package, "-c", program)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout


def test_green_levels_have_no_next_step():
    assert LEVELS[:3] == ("L0", "L1", "L2")
    assert next_step("echo:0", "L0") is None
    assert next_step("echo:0", "L1") is None
    with pytest.raises(ValueError, match="no level L99"):
        next_step("echo:0", "L99")


@pytest.mark.parametrize("name", ["", "Chip", "1chip", "my-chip", "my chip", "for", "chip_", "é"])
def test_names_that_name_nothing(name, tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="cannot name a backend"):
        new_backend.create(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["core", "cpu", "gpu", "testing"])
def test_names_with_a_meaning(name, tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="meaning of its own"):
        new_backend.create(name, tmp_path)


def test_names_that_are_taken(tmp_path, monkeypatch):
    with pytest.raises(errors.AlreadyExistsError, match="installed already, by opdock-echo"):
        new_backend.create("echo", tmp_path)
    (tmp_path / "opdock_chip.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(errors.AlreadyExistsError, match="opdock_chip can be imported"):
        new_backend.create("chip", tmp_path)


def test_a_folder_in_the_way_stays_as_it_is(package):
    before = listing(package)
    with pytest.raises(errors.AlreadyExistsError, match="exists already"):
        new_backend.create("my_chip", package.parent)
    assert listing(package) == before


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    def files(words, parts):
        yield Path("README.md"), "half"
        raise OSError("disk full")

    monkeypatch.setattr(new_backend, "_files", files)
    with pytest.raises(OSError, match="disk full"):
        new_backend.create("my_chip", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    done = CliRunner().invoke(new_backend.command, ["my_chip", "--dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "pytest" in done.output
    assert (tmp_path / "opdock-my-chip" / "pyproject.toml").is_file()
    device = tmp_path / "opdock-my-chip" / "src" / "opdock_my_chip" / "device.py"
    assert "namespace = xp" in device.read_text(encoding="utf-8")  # nobody was asked
    again = CliRunner().invoke(new_backend.command, ["my_chip", "--dir", str(tmp_path)])
    assert again.exit_code == 2
    assert "exists already" in again.output
    assert "exists already" in again.output
    nowhere = CliRunner().invoke(new_backend.command, ["other", "--dir", str(tmp_path / "no")])
    assert "is no folder" in nowhere.output


@pytest.mark.parametrize(("typed", "made"), [("", "namespace"), ("magic\nkernels", "kernels")])
def test_a_terminal_is_asked_what_to_start_with(tmp_path, monkeypatch, typed, made):
    monkeypatch.setattr(new_backend, "_is_terminal", lambda: True)
    options = ["my_chip", "--dir", str(tmp_path)]
    done = CliRunner().invoke(new_backend.command, options, input=f"{typed}\n")
    assert done.exit_code == 0, done.output
    for name, start in new_backend.STARTS.items():
        assert f"{name:<10} {start.about}" in done.output
    device = tmp_path / "opdock-my-chip" / "src" / "opdock_my_chip" / "device.py"
    assert ("namespace = xp" in device.read_text(encoding="utf-8")) is (made == "namespace")


def test_an_unknown_start_is_refused(tmp_path):
    options = ["my_chip", "--dir", str(tmp_path), "--start", "magic"]
    done = CliRunner().invoke(new_backend.command, options)
    assert done.exit_code == 2
    assert "'magic' is not one of 'namespace', 'kernels', 'compiler'" in done.output
    assert not list(tmp_path.iterdir())
