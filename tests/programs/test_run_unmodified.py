"""Programs that say `import tensorflow as tf`, run by `opdock run` as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REAL = Path(__file__).with_name("real")


@pytest.mark.parametrize(
    "name", ["freeze_graph", "mlp_summaries", "scopes_zoo", "straight_through", "text_cnn"]
)
def test_a_program_with_tensorflows_imports(name: str, tmp_path: Path) -> None:
    """The programs of `real/` with the import lines that their authors wrote."""
    text = (REAL / f"{name}.py").read_text(encoding="utf-8")
    original = re.sub(r"^(import|from) opdock\b", r"\1 tensorflow", text, flags=re.MULTILINE)
    assert "import tensorflow" in original
    (tmp_path / "program.py").write_text(original, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "run", "program.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    plain = subprocess.run(
        [sys.executable, REAL / f"{name}.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr
    assert bool(done.stdout) == bool(plain.stdout)
