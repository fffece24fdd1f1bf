"""Writes which module defines each op, and which have its kernels, in core and in the CPU backend.

A program imports what it uses, which these tables find. Run `make api` after a change; a test fails
when the files are stale.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = '''"""{about} Written by tools/make_families.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
'''
WIDTH = 100
CPU_TABLES = ("opdock_cpu.kernels", "opdock_cpu.onednn.kernels", "opdock_cpu.jit")

Modules = dict[str, set[str]]


def ops() -> Modules:
    """Family -> the op types that it defines."""
    from opdock.graph.nodes import registry

    found: Modules = {}
    for spec in registry.all_ops(probes=True):
        package, _dot, family = str(spec.home["__name__"]).rpartition(".")
        if package == "opdock.ops":
            found.setdefault(family, set()).add(spec.name)
    return found


def portable() -> Modules:
    """Module -> the op types of which it has portable kernels."""
    from opdock.graph.nodes import registry
    from opdock.kernels import portable as mirror

    mirror.load_families()
    found: Modules = {}
    for op, uses in mirror._registry.items():
        for use in uses:
            found.setdefault(use.bind.__module__.rpartition(".")[2], set()).add(op)
    expressed = {spec.name for spec in registry.all_ops() if spec.expr is not None}
    return {**found, mirror.ELEMENTWISE: expressed}


def cpu() -> Modules:
    """The CPU backend's tables -> the op types of their kernels."""
    found: Modules = {}
    for package in CPU_TABLES:
        root = importlib.import_module(package)
        for info in pkgutil.iter_modules(root.__path__):
            module = importlib.import_module(f"{package}.{info.name}")
            table = getattr(module, "table", None)
            if table is not None:
                found[f"{module.__name__}:table"] = set(table.ops())
    return found


def render(about: str, name: str, told: str, modules: Modules) -> str:
    """A file of one table: a module's name, and its op types as one string."""
    lines = [HEAD.format(about=about), f"{name}: Final[Mapping[str, str]] = {{"]
    for module, found in modules.items():
        lines += _entry(module, sorted(found))
    return "\n".join([*lines, "}", f'"""{told}"""', ""])


def _entry(module: str, found: Iterable[str]) -> list[str]:
    text = " ".join(found)
    if len(line := f'    "{module}": "{text}",') <= WIDTH:
        return [line]
    # As the formatter wants it, which joins what fits into one line.
    parts = [text] if len(text) <= WIDTH - 10 else textwrap.wrap(text, WIDTH - 12)
    quoted = [f'        "{part} "' for part in parts[:-1]] + [f'        "{parts[-1]}"']
    return [f'    "{module}": (', *quoted, "    ),"]


def files() -> dict[Path, str]:
    """Each file with what it is to hold."""
    return {
        ROOT / "core/src/opdock/graph/nodes/_families.py": render(
            "Which family defines an op.",
            "OPS",
            "Module of `opdock.ops` -> the op types that it defines.",
            dict(sorted(ops().items())),
        ),
        ROOT / "core/src/opdock/kernels/_portable.py": render(
            "Which modules have portable kernels of an op.",
            "PORTABLE",
            "Module of `opdock.kernels.portable` -> the op types of its kernels.",
            dict(sorted(portable().items())),
        ),
        ROOT / "backends/cpu/src/opdock_cpu/_kernels.py": render(
            "Which tables have kernels for an op.",
            "TABLES",
            "A table, in the order in which they are asked -> the op types of its kernels.",
            cpu(),
        ),
    }


def main() -> int:
    """Writes the files, or with --check says which are stale."""
    stale = []
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print("run `make api`: stale:", *(p.relative_to(ROOT) for p in stale), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
