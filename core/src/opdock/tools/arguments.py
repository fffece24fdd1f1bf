"""Command lines as TensorFlow's tools take them."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.serial.import_arguments import parse_input
from opdock.nearest import meant, nearest

__all__ = [
    "ToolParser", "add_json", "add_switch", "change", "check_nodes", "described_change", "listed",
    "naming", "shape_of", "split_by", "type_number", "type_of",
]  # fmt: skip

_WORDS = {"true": True, "1": True, "false": False, "0": False}


class ToolParser(argparse.ArgumentParser):
    """A parser that says what is wrong in a line, and what an unknown option was meant to be."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.options: list[argparse.Action] = []
        super().__init__(*args, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Adds an option, which `options` has too."""
        made = super().add_argument(*names, **options)
        self.options.append(made)
        return made

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reads a command line; an unknown option is told of before one that is missing."""
        words = list(sys.argv[1:] if args is None else args)
        known = [name for option in self.options for name in option.option_strings]
        for word in words:
            name = word.partition("=")[0]
            # A name may be cut short.
            if name.startswith("--") and not any(o.startswith(name) for o in known):
                close = nearest(name, known)
                self.error(f"there is no option {name}" + f"; did you mean {close}?" * bool(close))
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


@contextlib.contextmanager
def naming(option: str) -> Iterator[None]:
    """Has errors begin with the option whose value is at fault.

    Raises:
        OpError: an error of its kind.
        ValueError: another error.
    """
    try:
        yield
    except errors.OpError as e:
        kind = errors.exception_type_from_error_code(e.error_code)
        text = str(e.message).partition("\n")[0]
        raise kind(None, None, f"{option}: {text}") from e
    except (ValueError, KeyError, OSError) as e:
        raise ValueError(f"{option}: {e.args[0] if isinstance(e, KeyError) else e}") from e


def check_nodes(graph: Any, option: str, texts: Iterable[str]) -> None:
    """Checks that a graph has the nodes that an option names.

    Args:
        graph: a GraphDef.
        option: how it is written: "--inputs".
        texts: names of nodes or of their outputs.

    Raises:
        InvalidArgumentError: a name is malformed, or the graph has no such node.
    """
    known = {node.name: None for node in graph.node}
    for text in texts:
        try:
            name, _ = parse_input(text)
        except ValueError as e:
            raise errors.InvalidArgumentError(None, None, f"{option}: {e}") from None
        if name not in known:
            told = f"{option}: the graph has no node '{name}'{meant(name, known)}"
            raise errors.InvalidArgumentError(None, None, told)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def change(path: Any, before: Any, after: Any) -> dict[str, Any]:
    """What became of a graph, as JSON has it: nodes, bytes, and the ops that went and came.

    Args:
        path: what was written.
        before, after: GraphDefs.
    """
    old, new = (Counter(node.op for node in graph.node) for graph in (before, after))
    return {
        "output": str(path), "nodes_before": len(before.node), "nodes": len(after.node),
        "bytes_before": before.ByteSize(), "bytes": after.ByteSize(),
        "removed": dict(sorted((old - new).items())), "added": dict(sorted((new - old).items())),
    }  # fmt: skip


def described_change(found: dict[str, Any]) -> str:
    """The same in a line."""
    ops = [f"-{n} {op}" for op, n in found["removed"].items()]
    ops += [f"+{n} {op}" for op, n in found["added"].items()]
    return (
        f"{found['output']}: {found['nodes_before']} -> {found['nodes']} nodes, "
        f"{found['bytes_before']:,} -> {found['bytes']:,} bytes"
        + (f" ({', '.join(ops)})" if ops else "")
    )


def add_switch(parser: argparse.ArgumentParser, name: str, default: bool, text: str) -> None:
    """Adds an option that is written `--name`, `--name=true` or `--name=false`."""
    parser.add_argument(
        name, type=_switch, nargs="?", const=True, default=default, metavar="BOOL",
        help=f"{text} (default: {str(default).lower()})",
    )  # fmt: skip


def _switch(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _WORDS[text.lower()]


def listed(text: str) -> list[str]:
    """The words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def shape_of(text: str) -> tuple[int, ...]:
    """A shape: sizes with commas between them; a scalar if there is none.

    Raises:
        argparse.ArgumentTypeError: a size is no number, or negative.
    """
    try:
        sizes = tuple(int(word) for word in listed(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 1,299,299,3") from None
    if any(size < 0 for size in sizes):
        raise argparse.ArgumentTypeError(
            f"{text!r} has unknown sizes (-1): give the size to benchmark with"
        )
    return sizes


def type_of(text: str) -> DType:
    """A type by name.

    Raises:
        argparse.ArgumentTypeError: there is none.
    """
    try:
        return dtypes.as_dtype(text)
    except TypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is no type such as float or uint8") from None


def type_number(text: str) -> int:
    """The number that `DataType` has for a type.

    Raises:
        argparse.ArgumentTypeError: it has none.
    """
    try:
        return dtypes.as_dtype(int(text)).as_datatype_enum
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of DataType, such as 1") from None


def split_by(separator: str, one: Any) -> Any:
    """A reader of several values, each read by `one`."""

    def read(text: str) -> Sequence[Any]:
        return [one(part) for part in text.split(separator)] if text else []

    return read
