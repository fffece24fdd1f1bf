"""Errors that name the node and the user's line."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

from opdock import errors
from opdock.codes import coded
from opdock.compiler.emit.asking import compiler_of
from opdock.compiler.ir.block import COPY, HOST, SEGMENT, Node
from opdock.io.files import error_from_os

if TYPE_CHECKING:
    from opdock.graph.nodes.operation import Operation

__all__ = ["LINE", "as_op_error", "at_step", "culprit", "made_of", "miscounted", "where"]

LINE: Final = "<opdock program>"
"""What the code of a program's line is called in tracebacks."""

_UNPACKING: Final = re.compile("(too many|not enough) values to unpack|cannot unpack non-iterable")
_SHAPE: Final = re.compile(r"\([\d, ]*\)")
_TRANSLATED: Final[tuple[tuple[type[Exception], type[errors._CodedError]], ...]] = (
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, errors.InvalidArgumentError),
    (IndexError, errors.InvalidArgumentError),
    (OverflowError, errors.InvalidArgumentError),
    (ZeroDivisionError, errors.InvalidArgumentError),
)

_WORDLESS: Final[dict[type[Exception], str]] = {
    MemoryError: "The op does not fit into the host's memory"
}


def as_op_error(error: BaseException, node: Node, what: str = "") -> errors.OpError:
    """`error` as an OpError that names the node and the user's line.

    Args:
        error: what was raised.
        node: where.
        what: what raised it, if not the call of the node's kernel: "bind()" of that.
    """
    if isinstance(error, errors.OpError):
        if "[[node " in error.message:
            return error
        same: Any = type(error)
        located: errors.OpError = same(None, node.origin, error.message + _late(node) + where(node))
        return located
    if _is_miscounted(error):
        return miscounted(node, _words(error))
    if isinstance(error, OSError) and error.errno is not None:
        return as_op_error(error_from_os(error), node, what)
    for kind, cls in _TRANSLATED:
        if isinstance(error, kind):
            # A copy is nothing that the user's program says, and room is what a kernel asks for.
            named = what or node.op == COPY or kind is MemoryError
            by = f"\n\t ({' of '.join(filter(None, (what, culprit(node))))})" if named else ""
            text = _words(error) or _WORDLESS.get(kind, kind.__name__)
            return cls(None, node.origin, f"{_in_our_words(text)}{by}{where(node)}")
    if (name := _missing(error, node)) is not None:
        text = f"The namespace of {culprit(node)} has no {name!r}{where(node)}"
        return errors.UnimplementedError(None, node.origin, text)
    text = ": ".join(filter(None, (type(error).__name__, _words(error))))
    by = " of ".join(filter(None, (what, culprit(node))))
    failed = f"{by} raised" if by else "it raised"
    text = f"Op {node.op} failed: {failed} {text}{_late(node)}{where(node)}"
    return errors.InternalError(None, node.origin, coded("OPD-KERNEL-001", text))


def miscounted(node: Node, what: str) -> errors.OpError:
    """The error of a node whose results are not as many as its op's."""
    who, count = culprit(node) or "it", len(node.out_dtypes)
    text = f"Op {node.op} failed: {who} did not give {count} results: {what}{where(node)}"
    return errors.InternalError(None, node.origin, coded("OPD-KERNEL-001", text))


def _is_miscounted(error: BaseException) -> bool:
    """Whether it is a program's line that could not take a kernel's results apart."""
    if _UNPACKING.match(_words(error)) is None:
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == LINE


def _words(error: BaseException) -> str:
    """What an exception says of itself; nothing if not even that works."""
    try:
        return str(error)
    except Exception:
        return ""


def _missing(error: BaseException, node: Node) -> str | None:
    """The function that a portable kernel did not find in its device's array library."""
    if not isinstance(error, AttributeError) or node.target is None or node.kernel is None:
        return None
    space = node.target.device.namespace
    known = (space, *(getattr(space, part, None) for part in ("linalg", "fft")))
    found = node.kernel.is_portable and any(error.obj is s for s in known if s is not None)
    return error.name if found else None


def _late(node: Node) -> str:
    """Of a copy that failed: whose error it may be."""
    if node.op != COPY or node.attrs["from"] == HOST:
        return ""
    return (
        f"\n\t (in the {node.attrs['how']} from {node.attrs['from']}, behind all that was queued "
        "there: the op that failed may be an earlier one, and OPDOCK_CHECK=1 tells which)"
    )


def _in_our_words(text: str) -> str:
    """NumPy's text on shapes that cannot be broadcast, as TF says it."""
    if not text.startswith("operands could not be broadcast together"):
        return text
    given = [s.replace(",)", ")").replace(" ", "") for s in _SHAPE.findall(text)]
    return "Incompatible shapes: " + " vs. ".join(f"[{s[1:-1]}]" for s in given)


def culprit(node: Node) -> str:
    """What computes a placed node, with plugin and device; empty when it is the runtime itself."""
    if node.op == COPY:
        return f"the {node.attrs['how']} from {node.attrs['from']} to {node.attrs['to']}"
    if node.target is None:
        return ""
    if node.op == SEGMENT:
        return f"the executable of {compiler_of(node.target)}"
    if node.kernel is None:
        return ""
    found = node.target.index.find(node.kernel)
    return f"{found or node.kernel.qualname} on {node.target.name}"


def where(node: Node) -> str:
    """TF's suffix that names a node, with the user's line."""
    line = node.origin.user_line if node.origin is not None else ""
    name = node.origin.name if node.origin is not None else node.name
    at = f" (defined at {line})" if line else ""
    if node.made_by:
        name, at = node.name, f"{at} made by {node.made_by}"
    return f"\n\t [[node {name}{at}]] (op {node.op}){_checked(node)}"


def _checked(node: Node) -> str:
    """Of a node that checks another's result: whose, where that was made, and of what."""
    if node.origin is None or not node.traits.checks:
        return ""
    return f"\n\t which checks {made_of(node.origin.inputs[0].op)}"


def made_of(op: Operation) -> str:
    """An operation with the user's line, and what it takes."""
    of = ", ".join(f"{t.name} {t.dtype.base_dtype.name}{t.shape}" for t in op.inputs)
    return f"[[node {op.name} (defined at {op.user_line})]] (op {op.type}), inputs: {of or 'none'}"


def at_step(error: errors.OpError, session: Any) -> None:
    """Adds to the error of a check in which global step it came, where the program counts them."""
    if error.op is None or not error.op.spec.traits.checks:
        return
    for counter in session.graph.get_collection("global_step"):
        with contextlib.suppress(errors.OpError):  # it may have no value
            error._add(f"\n\t at global step {session.run(counter)}")
