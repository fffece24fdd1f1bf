"""Finds what a file takes from Python 2, or calls as TensorFlow did before 1.0.

Neither Python 3 nor TensorFlow 1.15 has these, so `opdock run` does not bring them back: the
program is to be changed. A file that looks for them itself (`try: import cPickle`, `if six.PY2:`,
`from six.moves import xrange`) is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_MOVED: Final = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "anydbm": "dbm",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "exceptions": "builtins",
    "httplib": "http.client",
    "itertools.imap": "map",
    "itertools.ifilter": "filter",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "string.join": "str.join",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.uppercase": "string.ascii_uppercase",
    "thread": "_thread",
    "urllib.quote": "urllib.parse.quote",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
_BUILTINS: Final = {
    "basestring": "str",
    "cmp": "(a > b) - (a < b)",
    "execfile": "exec(open(path).read())",
    "file": "open",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
_METHODS: Final = {
    "has_key": "the operator `in`",
    "iteritems": "items",
    "iterkeys": "keys",
    "itervalues": "values",
    "viewitems": "items",
    "viewkeys": "keys",
    "viewvalues": "values",
}
# What the interpreter says of the syntax that Python 3 has given up.
_SYNTAX: Final = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "invalid decimal literal",
    "inconsistent use of tabs and spaces",
)
_LOSSES: Final = frozenset(
    {
        "tensorflow.nn.sigmoid_cross_entropy_with_logits",
        "tensorflow.nn.softmax_cross_entropy_with_logits",
        "tensorflow.nn.softmax_cross_entropy_with_logits_v2",
        "tensorflow.nn.sparse_softmax_cross_entropy_with_logits",
    }
)


@dataclass(frozen=True, slots=True)
class Outdated:
    """A name as the program wrote it, the line where it stands, and what to write instead."""

    name: str
    line: int
    why: str


def python2_syntax(error: Exception) -> bool:
    """Whether a file that cannot be read seems to be of Python 2."""
    return isinstance(error, SyntaxError) and any(s in str(error) for s in _SYNTAX)


def outdated_of(tree: ast.Module, calls: Iterable[tuple[str, ast.Call]]) -> list[Outdated]:
    """What a file takes from Python 2 or calls as before TensorFlow 1.0, by line.

    Args:
        tree: the file's.
        calls: its calls of functions of TensorFlow's, by their dotted names.
    """
    nodes = list(_unguarded(tree))
    bound = {name for node in ast.walk(tree) for name in _bindings(node)}
    found = [one for node in nodes for one in _imports(node)]
    modules = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names if not a.asname}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in _BUILTINS and node.id not in bound:
                found.append(_python2(node.id, node.lineno, _BUILTINS[node.id]))
        elif isinstance(node, ast.Attribute):
            found.extend(_attributes(node, modules))
    for path, call in calls:
        if why := _called(path, call.args):
            found.append(Outdated(f"tf.{path.partition('.')[2]}", call.lineno, why))
    return sorted(set(found), key=lambda o: (o.line, o.name))


def _python2(name: str, line: int, instead: str) -> Outdated:
    return Outdated(name, line, f"Python 2's; Python 3 has {instead}")


def _imports(node: ast.AST) -> Iterator[Outdated]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        if name in _MOVED:
            assert isinstance(node, ast.Import | ast.ImportFrom)
            yield _python2(name, node.lineno, _MOVED[name])


def _attributes(node: ast.Attribute, modules: set[str]) -> Iterator[Outdated]:
    owner = node.value.id if isinstance(node.value, ast.Name) else None
    dotted = f"{owner}.{node.attr}"
    if owner in modules and owner not in _MOVED and dotted in _MOVED:
        yield _python2(dotted, node.lineno, _MOVED[dotted])
    elif node.attr in _METHODS and owner not in ("six", "self", "cls"):
        yield _python2(f".{node.attr}()", node.lineno, f"{_METHODS[node.attr]} of a dict")


def _called(path: str, args: list[ast.expr]) -> str:
    """What is wrong with the arguments of a call since TensorFlow 1.0; empty if nothing is."""
    if path in _LOSSES and args and not isinstance(args[0], ast.Starred):
        return "since TensorFlow 1.0 takes named arguments alone: labels=, logits="
    first_is_number = bool(args) and isinstance(args[0], ast.Constant)
    if path == "tensorflow.concat" and len(args) == 2 and first_is_number:
        return "since TensorFlow 1.0 the axis comes last: tf.concat(values, axis)"
    if path == "tensorflow.split" and len(args) == 3 and first_is_number:
        return "since TensorFlow 1.0 the axis comes last: tf.split(value, parts, axis)"
    return ""


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but those that the program runs under one Python only."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Try) and any(_expects_none(h) for h in child.handlers):
            for part in (*child.orelse, *child.finalbody):
                yield from _unguarded(part)
        elif isinstance(child, ast.If | ast.IfExp) and _asks_for_version(child.test):
            continue
        else:
            yield from _unguarded(child)


def _expects_none(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is there for a name or a module that is missing."""
    if handler.type is None:
        return True
    names = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    return not names.isdisjoint(
        {"AttributeError", "Exception", "ImportError", "ModuleNotFoundError", "NameError"}
    )


def _asks_for_version(test: ast.expr) -> bool:
    words = {n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    words |= {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return not words.isdisjoint({"PY2", "PY3", "version_info", "python_version"})


def _bindings(node: ast.AST) -> Iterator[str]:
    """The names that a node gives a value."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
