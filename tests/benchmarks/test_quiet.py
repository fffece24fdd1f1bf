"""All tables by one command: what it runs there is, and takes the options that it is given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, on a machine that is quiet."""
    import quiet as found

    monkeypatch.setattr(found, "others", lambda: 0.0)
    return found


def test_commands_are_those_of_the_programs(quiet: Any) -> None:
    side = quiet.Side("tensorflow", sys.executable)
    asked: dict[str, set[str]] = {}
    for program, *words in quiet.commands([side]).values():
        asked.setdefault(program, set()).update(w for w in words if w.startswith("--"))
    for program, options in asked.items():
        told = subprocess.run(
            [sys.executable, HERE / program, "--help"], capture_output=True, text=True, check=True
        ).stdout
        assert not {o for o in options if f"{o} " not in told and f"{o}]" not in told}


def test_what_fails_is_named_and_the_rest_goes_on(
    quiet: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; print('figures'); sys.exit(int(sys.argv[1]))", "utf-8")
    words = {"bad": [str(program), "3"], "good": [str(program), "0"]}
    monkeypatch.setattr(quiet, "commands", lambda peers: words)
    folder = tmp_path / "said"
    assert quiet.main(["--folder", str(folder)]) == 1
    assert "failed: bad\n" in capsys.readouterr().out
    assert [p.read_text("utf-8") for p in sorted(folder.iterdir())] == ["figures\n"] * 2
    assert quiet.main(["go*", "--folder", str(folder)]) == 0


def test_it_waits_for_others(quiet: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    used = iter([1.5, 0.9, 0.0])
    monkeypatch.setattr(quiet, "others", lambda: next(used))
    monkeypatch.setattr(quiet, "PAUSE", 0.0)
    assert quiet.measure([str(HERE / "quiet.py"), "--help"], tmp_path / "said") == 0
    assert next(used, None) is None


def test_names_that_are_none(quiet: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        quiet.main(["nothing", "--list"])
    assert "no measurement has such a name" in capsys.readouterr().err
