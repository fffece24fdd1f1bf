"""`%load_ext opdock`: who shows what, and cells that are programs of TensorFlow 1's days.

Objects know nothing of notebooks: IPython is told how each class is shown, by the class's place, so
that nothing is imported which the notebook does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from opdock.notebook import shown
from opdock.notebook.bar import Bar

if TYPE_CHECKING:
    from opdock.testing.report.report import Report

SHOWN: Final[dict[tuple[str, str], Callable[[Any], str]]] = {
    ("opdock.graph.nodes.operation", "Operation"): shown.of_operation,
    ("opdock.graph.nodes.operation", "Tensor"): shown.of_tensor,
    ("opdock.graph.nodes.graph", "Graph"): shown.of_graph,
    ("opdock.runtime.session", "Session"): shown.of_session,
    ("opdock.runtime.session", "InteractiveSession"): shown.of_session,
    ("opdock.runtime.inspect.explain", "Explanation"): shown.of_explanation,
    ("opdock.runtime.inspect.shadow", "Shadow"): shown.of_shadow,
    ("opdock.testing.report.report", "Report"): shown.of_report,
}
"""The module and name of each class, and what shows it as HTML."""


def load_ipython_extension(shell: Any) -> None:
    """Teaches IPython's shell to show opdock's objects as HTML, and `%%tf1`, `%conformance`.

    IPython calls it for `%load_ext opdock`.
    """
    html = shell.display_formatter.formatters["text/html"]
    for (module, name), show in SHOWN.items():
        html.for_type_by_name(module, name, show)

    def tf1(line: str, cell: str) -> None:
        run_cell(shell, line, cell)

    tf1.__doc__ = run_cell.__doc__
    shell.register_magic_function(tf1, "cell", "tf1")

    def conformance(line: str) -> Any:
        return run_suite(shell, line)

    conformance.__doc__ = run_suite.__doc__
    shell.register_magic_function(conformance, "line", "conformance")


def run_suite(shell: Any, line: str) -> Report:
    """Proves a device as `opdock conformance` does, with a bar while it runs.

    Usage: %conformance DEVICE [OP ...]

    Args:
        shell: IPython's.
        line: the device and the op types, or names of tests; all ops if there are none.

    Returns:
        The report, which a notebook shows as tables.

    Raises:
        ValueError: no device is named, or there is none of that name, or no such op.
    """
    from opdock.testing.harness.suite import run
    from opdock.testing.levels.device import open_device

    device, *ops = line.split() or [""]
    if not device:
        raise ValueError("%conformance wants a device: %conformance cpu:0 Add MatMul")
    bar, count = Bar(shell.display_pub, "units"), 0

    def progress(number: int, total: int, unit: Any) -> None:
        nonlocal count
        count = total
        bar.update(number, total, unit.id)

    report = run(open_device(device), ops=ops, progress=progress)
    bar.close(len(report.outcomes), count)
    return report


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Runs the cell as `opdock run` runs a program: `import tensorflow` means opdock.

    Usage: %%tf1 [--no-legacy]

    From this cell on that holds in the whole notebook, and names that Python, NumPy and other
    libraries have removed since 2019 are there again, unless --no-legacy is given.

    Raises:
        ValueError: another option is given.
    """
    options = line.split()
    if unknown := set(options) - {"--no-legacy"}:
        raise ValueError(f"%%tf1 does not know {', '.join(sorted(unknown))}; it takes --no-legacy")
    import opdock

    opdock.install_as_tensorflow()
    if not options:
        from opdock import legacy

        legacy.put_back()
    shell.run_cell(cell).raise_error()
