"""The programs in README and docs run, their links lead somewhere, their quotations are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r"<!-- quote: (\S+) -->\n(.*?)<!-- end quote -->", re.DOTALL)
EXAMPLES = {
    "digits.py": (["--epochs", "6"], r"test accuracy: \d\d\.\d\d %$"),
    "label_digits.py": (["--epochs", "2"], r"in bytes: accuracy -?[01]\.\d points lower, 2\d% of"),
    "linear_regression.py": ([], r"W: \[(2\.|1\.9999\d*)\] b: \[-0\.(5|499\d*)\] cost: \S+$"),
    "multi_device.py": ([], r"loss: 0\.0[01]\d\d$"),
}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=name
)
def test_programs_run(page: Path, tmp_path: Path) -> None:
    """All Python blocks of a page are one program, run as a file would be, line numbers kept."""
    text = page.read_text(encoding="utf-8")
    program = [""] * text.count("\n")
    for match in BLOCK.finditer(text):
        start = text[: match.start()].count("\n") + 1
        lines = match.group(1).splitlines()
        program[start : start + len(lines)] = lines
    script = tmp_path / "page.py"
    script.write_text("\n".join(program) + "\n", encoding="utf-8")
    run(script, tmp_path)


def run(script: Path, cwd: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES))
def test_examples_run(example: str, tmp_path: Path) -> None:
    words, last = EXAMPLES[example]
    printed = run(ROOT / "examples" / example, tmp_path, *words)
    assert re.match(last, printed.splitlines()[-1]), printed


def test_every_example_is_run() -> None:
    assert {p.name for p in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_quotes_equal_their_files(page: Path) -> None:
    """`python tests/test_docs.py` renews them."""
    text = page.read_text(encoding="utf-8")
    assert text == renewed(text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert not [t for t in targets if not (page.parent / t).exists()]


def test_what_the_makefile_promises_is_said() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE):
        if target not in ("help", "setup", "clean"):
            assert target in readme, f"README does not mention make {target}"


def renewed(text: str) -> str:
    """The page with each quotation as its file is now."""

    def quote(match: re.Match[str]) -> str:
        path = ROOT / match.group(1)
        language = {".py": "python", ".toml": "toml"}[path.suffix]
        code = path.read_text(encoding="utf-8").rstrip("\n")
        # Four backticks keep a quotation out of the blocks that run as the page's program.
        return f"<!-- quote: {match.group(1)} -->\n````{language}\n{code}\n````\n<!-- end quote -->"

    return QUOTE.sub(quote, text)


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(renewed(one.read_text(encoding="utf-8")), encoding="utf-8")
