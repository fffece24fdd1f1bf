"""Writes the names of TensorFlow 1.15's interface, and no code: opdock/mapping/tf115*.txt.

    python tools/make_tf_names.py --git DIR [--rev r1.15]

DIR is a git directory that holds TensorFlow's branch r1.15. From the golden files of its interface
come the public modules and classes with their members; from the export decorators and imports of
its Python sources, which internal module calls which public name what. A release does not change
any more, so this runs once; it stays as the account of where the table comes from.

A line is a record, its fields split at blanks, paths without the leading `tensorflow.`:

    public MODULE NAME...            NAME/ a module, NAME() a class, NAME. a value, NAME a function
    class PATH MEMBER...             the public members of a public class
    v2 PATH[=PATH]...                names of tf.compat.v2 and the 1.x name that serves them
    order PATH NAME[=DEFAULT]...     the arguments of one of them, where 1.x's are others
    module PATH                      a module of the internal tree with no names that matter here
    op TYPE=PUBLIC[|PUBLIC]...       an op's generated function is these public functions
    module PATH NAME=PUBLIC[|PUBLIC] exported as; ~PUBLIC is exported to TF 2 alone
                NAME<MODULE[:NAME]   imported from an internal module
                NAME@NAME            another name of the same object in this module
                *MODULE              all names of that module
                +NAME                one of those that it keeps, where it removes all others
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "core/src/opdock/mapping"
GOLDEN = "tensorflow/tools/api/golden"
API_DEF = "tensorflow/core/api_def"
NO_TESTS = ("tensorflow/contrib/testing/python/framework/util_test.py",)
"""Named as tests are, but modules of the interface."""
OTHER_IN_V2 = (
    "losses.", "metrics.", "summary.", "saved_model.load", "test.assert_equal_graph_def",
    "test.compute_gradient", "image.resize",
)  # fmt: skip
"""What TF 2 calls something else by a name of TF 1's."""
EXPORTERS = ("tf_export", "keras_export", "estimator_export")
_CLASS = re.compile(r"<type 'type'>|Meta\w*'>|MessageType'>")
_MEMBER = re.compile(
    r"^  (member|member_method) \{\n    name: \"(\w+)\"\n(?:    mtype: \"(.*)\"\n)?"
    r"(?:    argspec: \"(.*)\"\n)?",
    re.MULTILINE,
)


class Tree:
    """The files of one revision, read in one go."""

    def __init__(self, git: str, rev: str) -> None:
        listing = self._git(git, "ls-tree", "-r", rev, "tensorflow/").decode().splitlines()
        rows = [(line.split()[2], line.partition("\t")[2]) for line in listing]
        rows = [
            r
            for r in rows
            if r[1].endswith((".py", ".proto")) or r[1].startswith((GOLDEN, API_DEF))
        ]
        text = self._git(git, "cat-file", "--batch", given="\n".join(h for h, _ in rows))
        self.files: dict[str, str] = {}
        at = 0
        for _, path in rows:
            end = text.index(b"\n", at)
            size = int(text[at:end].split()[2])
            self.files[path] = text[end + 1 : end + 1 + size].decode("utf-8", "replace")
            at = end + 1 + size + 1

    @staticmethod
    def _git(git: str, *words: str, given: str = "") -> bytes:
        command = ["git", "-C", git, *words]
        return subprocess.run(command, input=given.encode(), capture_output=True, check=True).stdout


def golden(tree: Tree, version: str) -> Iterator[tuple[str, bool, list[tuple[str, str, str, str]]]]:
    """(path, whether a class, its members as (kind, name, type, arguments)) of the golden files."""
    for path, text in sorted(tree.files.items()):
        if path.startswith(f"{GOLDEN}/{version}/") and path.endswith(".pbtxt"):
            where = re.search(r'path: "tensorflow\.?([\w.]*)"', text)
            if where is not None:
                yield where[1], "\ntf_module {" not in text, _MEMBER.findall(text)


def marked(kind: str, name: str, type_: str) -> str:
    """A member's name with the mark of what it is."""
    if kind == "member_method":
        return name
    if "module" in type_:
        return f"{name}/"
    return f"{name}()" if _CLASS.search(type_.replace("\\", "")) else f"{name}."


def public_lines(tree: Tree) -> Iterator[str]:
    """The records of the public interface."""
    for path, is_class, members in golden(tree, "v1"):
        if path.startswith("compat.v"):
            continue
        names = sorted({marked(k, n, t) for k, n, t, _ in members if not n.startswith("__")})
        if is_class:
            yield f"class {path} {' '.join(n.rstrip('().') for n in names)}".rstrip()
        else:
            yield f"public {path or '.'} {' '.join(names)}".rstrip()


def op_lines(tree: Tree) -> Iterator[str]:
    """Which public functions are an op's generated function and nothing more."""
    public = {
        f"{path}.{name}".lstrip(".")
        for path, is_class, members in golden(tree, "v1")
        if not is_class
        for kind, name, _, _ in members
        if kind == "member_method"
    }
    words = []
    for path, text in sorted(tree.files.items()):
        if not path.startswith(f"{API_DEF}/base_api/api_def_"):
            continue
        found = re.search(r'graph_op_name: "(\w+)"', text)
        if found is None:
            continue
        python = tree.files.get(path.replace("/base_api/", "/python_api/"), text)
        names = re.findall(r'endpoint \{\s*name: "([\w.]+)"', python)
        if not names and "HIDDEN" not in python:
            names = [snake(found[1])]
        names = [n for n in names if n in public]
        if names:
            words.append(f"{found[1]}={'|'.join(names)}")
    yield f"op {' '.join(words)}"


def snake(name: str) -> str:
    """The Python name of an op type, as TF's generator spells it."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def exports_of(call: ast.expr) -> list[str] | None:
    """The public names that an export decorator gives, those of TF 2 alone marked; None if none."""
    if not isinstance(call, ast.Call):
        return None
    if getattr(call.func, "id", getattr(call.func, "attr", "")) not in EXPORTERS:
        return None
    both = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    for word in call.keywords:
        if word.arg == "v1" and isinstance(word.value, ast.List):
            first = [e.value for e in word.value.elts if isinstance(e, ast.Constant)]
            return [*map(str, first), *(f"~{n}" for n in both)]
    return both


class Module:
    """What one internal module calls what."""

    def __init__(self, path: str, text: str, modules: set[str]) -> None:
        self.path = path
        self.modules = modules
        self.exports: dict[str, list[str]] = defaultdict(list)
        self.aliases: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        self.modules_here: dict[str, str] = {}
        self.stars: list[str] = []
        self.kept: set[str] = set()
        self._lists: dict[str, list[str]] = {}
        tree = ast.parse(text)
        self._documented = re.findall(r"@@(\w+)", ast.get_docstring(tree) or "")
        for node in tree.body:
            self._read(node)

    def _read(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                self.exports[node.name] += exports_of(decorator) or []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._export_call(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self._assigned(node.targets[0].id, node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow"):
            self._imported(node)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for inner in (*node.body, *getattr(node, "orelse", ())):
                self._read(inner)

    def _assigned(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.List) and "symbols" in name:
            self._lists[name] = [str(e.value) for e in value.elts if isinstance(e, ast.Constant)]
        elif isinstance(value, ast.Name) and not name.startswith("__"):
            self.aliases[name] = value.id
        elif (
            isinstance(value, ast.Attribute)
            and isinstance(value.value, ast.Name)
            and (module := self.modules_here.get(value.value.id)) is not None
        ):
            self.imports[name] = f"{module}:{value.attr}"
        elif isinstance(value, ast.Call) and (found := exports_of(value.func)) is not None:
            self.exports[name] += found

    def _export_call(self, call: ast.Call) -> None:
        """`tf_export("x")(obj)` and `tf_export("x").export_constant(__name__, "OBJ")`."""
        if isinstance(call.func, ast.Name) and call.func.id == "remove_undocumented":
            listed = [self._lists.get(a.id, []) for a in call.args if isinstance(a, ast.Name)]
            self.kept.update(self._documented, *listed)
        found = exports_of(call.func)
        if found is not None and call.args and isinstance(call.args[0], ast.Name):
            self.exports[call.args[0].id] += found
        if isinstance(call.func, ast.Attribute) and call.func.attr == "export_constant":
            constant = call.args[1]
            if isinstance(constant, ast.Constant):
                self.exports[str(constant.value)] += exports_of(call.func.value) or []

    def _imported(self, node: ast.ImportFrom) -> None:
        module = (node.module or "").removeprefix("tensorflow").lstrip(".")
        package = self.path.endswith("__init__")
        for name in node.names:
            if name.name == "*":
                self.stars.append(module)
            elif (found := f"{module}.{name.name}".lstrip(".")) in self.modules:
                self.modules_here[name.asname or name.name] = found
                if package:
                    self.imports[name.asname or name.name] = found
            else:
                self.imports[name.asname or name.name] = f"{module}:{name.name}"

    def line(self) -> str:
        """The record."""
        words = [f"{n}={'|'.join(e)}" for n, e in self.exports.items() if e]
        words += [f"{n}@{target}" for n, target in self.aliases.items() if n not in self.exports]
        words += [f"{n}<{where}" for n, where in self.imports.items() if "decorator" not in where]
        words = [w for w in words if not w.startswith(("_TF", "tf_export", "keras_export"))]
        path = self.path.removesuffix(".__init__")
        # Where a library brings more, this says what was TensorFlow's.
        kept = sorted(self.kept) if path.startswith("contrib.distributions") else ()
        stars = [*(f"*{s}" for s in self.stars), *(f"+{n}" for n in kept)]
        return " ".join([f"module {path}", *sorted(words), *stars])


def module_names(tree: Tree) -> dict[str, str]:
    """Internal module (packages end in `__init__`) -> its source; generated ones have none."""
    found = {}
    for path, text in tree.files.items():
        is_test = path.endswith("_test.py") and path not in NO_TESTS
        if path.startswith(GOLDEN) or is_test or "/api/" in path:
            continue
        name = path.removeprefix("tensorflow/").replace("/", ".")
        if path.endswith(".proto"):
            found[name.removesuffix(".proto") + "_pb2"] = ""
        elif path.startswith(("tensorflow/python/", "tensorflow/contrib/", "tensorflow/examples/")):
            found[name.removesuffix(".py")] = text
        elif path.startswith(("tensorflow/core/", "tensorflow/tools/", "tensorflow/lite/")):
            found[name.removesuffix(".py")] = ""
    return found


def internal_lines(tree: Tree) -> Iterator[str]:
    """The records of the internal tree."""
    sources = module_names(tree)
    known = {name.removesuffix(".__init__") for name in sources}
    generated = set()
    for name, text in sources.items():
        for made in re.findall(r"\bgen_\w+_ops\b", text):
            if name.startswith("python."):
                generated.add(f"python.ops.{made}")
    known |= generated
    packages = {p for n in known for p in _parents(n)}
    for name, text in sorted(sources.items()):
        keeps = name.startswith("python.") or (name.startswith("contrib.") and "__init__" in name)
        yield Module(name, text if keeps else "", known | packages).line()
    for name in sorted(generated):
        yield f"module {name}"
    for name in sorted(packages - known):
        yield f"module {name}"


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def v2_lines(tree: Tree) -> Iterator[str]:
    """Names of TF 2's interface in 1.15 that a name of TF 1's serves.

    One object under both names, or a class, or a function whose first arguments are the other's.
    """
    shared: dict[str, str] = {}
    for name, text in module_names(tree).items():
        if text and name.startswith("python."):
            for found in Module(name, text, set()).exports.values():
                one = [f for f in found if not f.startswith("~")]
                for public in found:
                    if one:
                        shared[public.lstrip("~")] = public if public in one else one[0]
    first: dict[str, tuple[str, str]] = {}
    for path, is_class, members in golden(tree, "v1"):
        if not is_class:
            first |= {f"{path}.{n}".lstrip("."): (marked(k, n, t), a) for k, n, t, a in members}
    for path, is_class, members in golden(tree, "v2"):
        if is_class or path.startswith("compat.v"):
            continue
        words = []
        orders = []
        for kind, name, type_, arguments in members:
            full = f"{path}.{name}".lstrip(".")
            mark = marked(kind, name, type_)
            if name.startswith("__") or mark.endswith("/") or full.startswith(OTHER_IN_V2):
                continue
            mine, mine_arguments = first.get(full, ("", ""))
            if full in shared:
                words.append(full if shared[full] == full else f"{full}={shared[full]}")
                if first.get(shared[full], ("", arguments))[1] not in ("", arguments):
                    orders.append(f"order {full} {' '.join(with_defaults(arguments))}")
            elif mine and (mark.endswith(("()", ".")) or _starts_with(mine_arguments, arguments)):
                words.append(full)
                if mine_arguments not in ("", arguments):
                    orders.append(f"order {full} {' '.join(with_defaults(arguments))}")
        if words:
            yield f"v2 {' '.join(words)}"
        yield from orders


def _starts_with(mine: str, theirs: str) -> bool:
    """Whether a call written for `theirs` means the same with `mine`'s arguments."""
    return names_of(mine)[: len(names_of(theirs))] == names_of(theirs)


def names_of(arguments: str) -> list[str]:
    """The names in a golden file's list of arguments."""
    found = re.search(r"args=\[(.*?)\]", arguments)
    return re.findall(r"\\'(\w+)\\'", found[1]) if found else []


def with_defaults(arguments: str) -> list[str]:
    """Names with their defaults, as text without blanks: a dtype is "dtype:NAME"."""
    names = names_of(arguments)
    found = re.search(r"defaults=\[(.*)\]", arguments)
    values = re.findall(r"\\'(.*?)\\'(?:, |$)|\\\"(.*?)\\\"", found[1]) if found else []
    texts = [re.sub(r"<dtype: \\?'(\w+)\\?'>", r"dtype:\1", a or b) for a, b in values]
    plain = names[: len(names) - len(texts)]
    pairs = zip(names[len(plain) :], texts, strict=True)
    return [*plain, *(f"{name}={text.replace(' ', '')}" for name, text in pairs)]


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--git", required=True)
    parser.add_argument("--rev", default="r1.15")
    given = parser.parse_args()
    tree = Tree(given.git, given.rev)
    public = [*public_lines(tree), *op_lines(tree), *v2_lines(tree)]
    for name, lines in (("tf115", public), ("tf115_modules", internal_lines(tree))):
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
