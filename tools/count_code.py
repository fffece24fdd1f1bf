"""Counts the package's code at revisions: `python tools/count_code.py [REVISION ...]`.

Lines are those of Python under `src/` of core, the backends and the plugins; code is what is left
without blank lines, comments and docstrings. Tables that tools write are counted by themselves.
What the code is for is counted beside it: op types that are registered, uses of the decorators that
make kernels, names that modules export, public members of exported classes, and those of
TensorFlow 1.15's public names and members that a program finds. Op names are strings in `compiler/`
and `runtime/` that are op types. With `--folders` each folder of core is a row, with `--op-names`
each file that names ops.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = (
    "files", "lines", "code", "written by tools", "op types", "kernels", "exported names",
    "public members", "TensorFlow's names", "and members", "op names in passes",
)  # fmt: skip
_KERNEL = re.compile(r"^\s*@(?:portable|\w*table\.(?:kernel|binder))\(", re.MULTILINE)
_WRITTEN = re.compile(r"(?:Generated|Written) by tools/")
NAMES = ROOT / "core/src/opdock/mapping/tf115.txt"
# Run with a revision's packages alone: its op types, and how many of TensorFlow's names it has.
_ASK = """
import json, sys
import opdock
try:
    from opdock.graph.nodes import registry
except ImportError:
    from opdock.graph import registry

def found(path):
    value = opdock
    for part in path.split("."):
        value = getattr(value, part, None) if part else value
    return value

names = members = 0
for line in open(sys.argv[1], encoding="utf-8"):
    kind, *words = line.split() or [""]
    if kind == "public":
        module = found(words[0].strip("."))
        names += sum(hasattr(module, word.rstrip("().")) for word in words[1:] if word[-1] != "/")
    elif kind == "class":
        kept = found(words[0])
        members += sum(hasattr(kept, word) for word in words[1:])
print(json.dumps([sorted(spec.name for spec in registry.all_ops()), names, members]))
"""


def files(revision: str) -> Iterator[tuple[str, bytes]]:
    """The path and content of each file of the package at a revision."""
    command = ["git", "archive", revision, "core", "backends", "plugins"]
    packed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            file = archive.extractfile(member) if "/src/" in member.name else None
            if file is not None:
                yield member.name, file.read()


def sources(revision: str) -> Iterator[tuple[str, str]]:
    """The path and text of each module of the package at a revision."""
    return ((p, content.decode()) for p, content in files(revision) if p.endswith(".py"))


def code_lines(text: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold something neither a comment nor a docstring."""
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    blank |= {tokenize.ENDMARKER, tokenize.ENCODING}
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                held.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return held


def exported(tree: ast.Module) -> int:
    """How many names a module lists in `__all__`, or its public definitions where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(node.value.elts) if isinstance(node.value, (ast.List, ast.Tuple)) else 0
    kinds = (ast.ClassDef, ast.FunctionDef)
    return sum(isinstance(n, kinds) and not n.name.startswith("_") for n in tree.body)


def members(tree: ast.Module) -> int:
    """How many public methods and attributes the public classes of a module define."""
    return sum(
        isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        for owner in tree.body
        if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_")
        for node in owner.body
    )


def asked(revision: str) -> tuple[set[str], int, int]:
    """The op types of a revision, and how many of TensorFlow's names and members it has."""
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files(revision):
            file = Path(folder, path.partition("/src/")[2])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        code = f"import sys; sys.path.insert(0, {folder!r})\n{_ASK}"
        command = [sys.executable, "-c", code, str(NAMES)]
        run = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
    ops, names, found = json.loads(run.stdout)
    return set(ops), names, found


def op_names(tree: ast.Module, ops: set[str]) -> int:
    """How many strings of a module are op types."""
    return sum(isinstance(n, ast.Constant) and n.value in ops for n in ast.walk(tree))


def count(revision: str) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """What there is at a revision: in all, and by folder of core, and by file that names ops."""
    ops, names, kept = asked(revision)
    total = Counter({"op types": len(ops), "TensorFlow's names": names, "and members": kept})
    folders: dict[str, Counter[str]] = {}
    for path, text in sources(revision):
        tree, lines = ast.parse(text), text.count("\n")
        code = "written by tools" if _WRITTEN.search(text[:250]) else "code"
        found = Counter({"files": 1, "lines": lines, code: len(code_lines(text, tree))})
        found["kernels"] = len(_KERNEL.findall(text))
        found["exported names"] = exported(tree)
        found["public members"] = members(tree)
        if path.startswith(("core/src/opdock/compiler/", "core/src/opdock/runtime/")):
            found["op names in passes"] = op_names(tree, ops)
            folders[path] = Counter({"op names": found["op names in passes"]})
        total.update(found)
        inside = path.removeprefix("core/src/opdock/").split("/")
        folder = inside[0] if path.startswith("core/") and len(inside) > 1 else path.split("/")[0]
        folders.setdefault(folder, Counter()).update(found)
    return total, folders


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("revisions", nargs="*", default=["HEAD"])
    p.add_argument("--folders", action="store_true", help="each folder of core as well")
    p.add_argument("--op-names", action="store_true", help="each file with names of ops as well")
    args = p.parse_args()
    found = [count(revision) for revision in args.revisions]
    print(f"{'':24}", *(f"{r[:12]:>12}" for r in args.revisions))
    for row in ROWS:
        print(f"{row:24}", *(f"{total[row]:12,}" for total, _ in found))
    for each, of in (
        ("op type", ("op types",)),
        ("kernel", ("kernels",)),
        ("exported name", ("exported names",)),
        ("name or member", ("exported names", "public members")),
        ("TensorFlow's name", ("TensorFlow's names",)),
        ("TensorFlow's any", ("TensorFlow's names", "and members")),
    ):
        shares = (total["code"] / max(sum(total[o] for o in of), 1) for total, _ in found)
        print(f"{'code / ' + each:24}", *(f"{share:12.1f}" for share in shares))
    for wanted, row in ((args.folders, "lines"), (args.op_names, "op names")):
        rows = {n for _, folders in found for n, has in folders.items() if has[row]}
        for name in sorted(rows) if wanted else ():
            counts = (folders.get(name, Counter())[row] for _, folders in found)
            print(f"{name.removeprefix('core/src/opdock/'):40}", *(f"{n:12,}" for n in counts))


if __name__ == "__main__":
    main()
