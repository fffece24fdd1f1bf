"""Gives all distributions one version, and what they require of each other: before a release.

    python tools/set_version.py 0.2.0 [--root FOLDER]

Writes every pyproject.toml, the template of new backends, `opdock.__version__`, the version that
`tf.__git_version__` tells, and the head of CHANGELOG.md. `make setup reference` is next.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("core/src/opdock")
TEMPLATE = CORE / "cli/templates/backend/pyproject.toml.tmpl"


def changes(version: str) -> dict[str, list[tuple[str, str]]]:
    """By kind of file: patterns, and what takes the place of their second group."""
    required = (r"(opdock-[a-z]+(?:\[[a-z0-9,]*\])?>=)(\d+\.\d+\.\d+)", version)
    return {
        "project": [(r"(?m)^(version = \")(\d+\.\d+\.\d+)", version), required],
        "template": [required],
        "module": [(r"(?m)^(__version__ = \")(\d+\.\d+\.\d+)", version)],
        "git": [(r"(GIT_VERSION: Final = \"opdock-)(\d+\.\d+\.\d+)", version)],
        "changelog": [(r"\A(.*?^## )(\d+\.\d+\.\d+)", version)],
    }


def files(root: Path) -> dict[Path, str]:
    """Each file that holds the version, and its kind."""
    projects = [root / "pyproject.toml", root / "core/pyproject.toml"]
    projects += [*root.glob("backends/*/pyproject.toml"), *root.glob("plugins/*/pyproject.toml")]
    return dict.fromkeys(projects, "project") | {
        root / TEMPLATE: "template", root / CORE / "__init__.py": "module",
        root / CORE / "version.py": "git", root / "CHANGELOG.md": "changelog",
    }  # fmt: skip


def set_version(root: Path, version: str) -> None:
    """Writes the version into a tree.

    Raises:
        ValueError: the version is none, or a file does not say which one it has.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"{version!r} is no version such as 0.2.0")
    for path, kind in files(root).items():
        text = path.read_text(encoding="utf-8")
        for pattern, value in changes(version)[kind]:
            flags = re.DOTALL | re.MULTILINE if kind == "changelog" else 0
            text, count = re.subn(pattern, rf"\g<1>{value}", text, flags=flags)
            if not count and pattern == changes(version)[kind][0][0]:
                raise ValueError(f"{path} says no version")
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Writes it into this tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--root", type=Path, default=ROOT)
    args = parser.parse_args()
    set_version(args.root, args.version)


if __name__ == "__main__":
    main()
