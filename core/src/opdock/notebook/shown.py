"""Objects as HTML for notebooks. Names may be anyone's: all of them are text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from opdock.dtypes import DType

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph
    from opdock.graph.nodes.operation import Operation, Tensor
    from opdock.runtime.inspect.explain import Explanation
    from opdock.runtime.inspect.shadow import Shadow
    from opdock.runtime.session import Session
    from opdock.testing.report.report import Report

_MOST: Final = 12
"""Lines of a list before the rest is counted."""
_LONGEST: Final = 120
_PAGE_HEIGHT: Final = 620


def of_operation(op: Operation) -> str:
    """An operation: what it takes and makes, and who made it."""
    return _card(op.type, op.name, [
        ("device asked for", op.device),
        ("takes", _names(_tensor(t) for t in op.inputs)),
        ("waits for", _names(c.name for c in op.control_inputs)),
        ("makes", _names(_tensor(t) for t in op.outputs)),
        ("attributes", _names(f"{k} = {_short(v)}" for k, v in sorted(op.attrs.items()))),
        ("made in", op.user_line),
    ])  # fmt: skip


def of_tensor(tensor: Tensor) -> str:
    """A tensor: its type, its static shape, who makes and who takes it."""
    return _card("Tensor", tensor.name, [
        ("type", tensor.dtype.name), ("shape", str(tensor.shape)),
        ("made by", f"{tensor.op.type} {tensor.op.name}"),
        ("taken by", _names(f"{c.type} {c.name}" for c in tensor.consumers())),
        ("made in", tensor.op.user_line),
    ])  # fmt: skip


def of_graph(graph: Graph) -> str:
    """A graph: how many ops of each type, on which devices, and what its collections hold."""
    ops = graph.get_operations()
    types = Counter(op.type for op in ops)
    devices = Counter(op.device for op in ops if op.device)
    collections = {
        key: len(graph.get_collection_ref(key)) for key in graph.get_all_collection_keys()
    }
    return _card("Graph", f"{len(ops):,} ops", [
        ("by type", _names(f"{n:,} {kind}" for kind, n in types.most_common())),
        ("devices asked for", _names(f"{n:,} on {name}" for name, n in devices.most_common())),
        ("collections", _names(f"{key}: {n}" for key, n in sorted(collections.items(), key=str))),
        ("", "finalized" if graph.finalized else ""),
    ])  # fmt: skip


def of_session(session: Session) -> str:
    """A session: its graph and its devices."""
    if session._closed:
        return _card("Session", "closed", [])
    rows = [(d.name, d.device_type, _bytes(d.memory_limit_bytes)) for d in session.list_devices()]
    count = f"{len(session.graph.get_operations()):,} ops in its graph"
    return _card("Session", count, []) + _table(("device", "type", "memory"), rows)


def of_explanation(told: Explanation) -> str:
    """An explanation: its summary, and the page of `opdock view` to look around in."""
    from opdock.view.page import page_of

    page = page_of(told.view())
    frame = (
        f'<iframe sandbox="allow-scripts" srcdoc="{escape(page)}" '
        f'style="width:100%;height:{_PAGE_HEIGHT}px;border:1px solid #8885"></iframe>'
    )
    return f"<pre>{escape(told.summary())}</pre>{frame}"


def of_shadow(shadow: Shadow) -> str:
    """What a second device gave beside the first: by op, those beyond the tolerance first."""
    rows = sorted(shadow.found.values(), key=lambda c: (not c.error, -c.relative))
    head = ("node", "op", "times", "absolute", "relative", "beyond the tolerance", "defined at")
    cells = [
        (c.node, c.op, c.count, f"{c.absolute:.3g}", f"{c.relative:.3g}", _short(c.error), c.line)
        for c in rows
    ]
    skipped = _names(f"{node}: {_short(why)}" for node, why in sorted(shadow.skipped.items()))
    text = _card("Shadow", str(shadow).partition("\n")[0], [("not compared", skipped)])
    return text + (_table(head, cells) if cells else "")


def of_report(report: Report) -> str:
    """A conformance report: the score of each level, and what failed."""
    names = ("level", "claimed", "passed", "failed", "skipped", "known_bugs", "cases")
    head = [*(name.replace("_", " ") for name in names), "seconds"]
    rows = [
        [*(getattr(score, name) for name in names), f"{score.seconds:.1f}"]
        for score in report.levels()
    ]
    failed = [(o.id, r.reason) for o in report.outcomes for r in o.results if r.status == "failed"]
    shown = [(name, _short(why)) for name, why in failed[:_MOST]]
    text = _card("Conformance", report.device.get("name", ""), []) + _table(head, rows)
    if failed:
        text += _table((f"{len(failed)} failed", "why"), shown)
    return text


# ---------------------------------------------------------------- pieces
def _card(kind: str, name: str, facts: Iterable[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><td style="text-align:left;vertical-align:top;opacity:.65">{escape(key)}</td>'
        f'<td style="text-align:left;white-space:pre-line">{escape(value)}</td></tr>'
        for key, value in facts
        if value
    )
    head = f"<div>{escape(kind)} <b>{escape(name)}</b></div>"
    return f"{head}<table>{lines}</table>" if lines else head


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def cells(tag: str, row: Sequence[Any]) -> str:
        return "".join(f'<{tag} style="text-align:left">{escape(str(c))}</{tag}>' for c in row)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def _names(names: Iterable[str]) -> str:
    """Names, one a line; of many the first, and how many more there are."""
    every = list(names)
    more = [f"and {len(every) - _MOST:,} more"] if len(every) > _MOST else []
    return "\n".join([*every[:_MOST], *more])


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name}  {tensor.dtype.name} {tensor.shape}"


def _short(value: Any) -> str:
    text = (value.name if isinstance(value, DType) else str(value)).replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _bytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count > 0 else ""
