"""How all commands print for people: tables, sentences, and what shows that work goes on.

Colours and moving parts are for terminals alone, and NO_COLOR is heeded. Nothing breaks a word:
what does not fit a terminal as a table is printed row by row, and what is read by a program or goes
into a file is never wrapped.
"""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["Cell", "Screen", "column_widths", "counting", "styled", "working"]

Cell: TypeAlias = "str | Text"
_ENDLESS: Final = 100_000
"""The width of what is no terminal."""
_GAP: Final = 2
"""Blanks between two columns."""
_PATIENCE: Final = 2.0
"""Seconds after which people are shown that work goes on."""


def styled(text: str, style: str) -> Text:
    """A cell, or a part of a line, in a colour."""
    from rich.text import Text

    return Text(text, style)


class Screen:
    """Where a command prints.

    Args:
        stderr: whether to print there, since a program reads what is on stdout.
    """

    def __init__(self, stderr: bool = False) -> None:
        self._console = _console(stderr)

    @property
    def width(self) -> int:
        """How many letters a line holds."""
        return self._console.width

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        title: str = "",
        numbers: Sequence[str] = (),
    ) -> None:
        """Prints a table, or each row by itself where the table would break words.

        Args:
            columns: their names; one without any content is left out.
            rows: a cell for each column; lines of a cell stand below each other.
            title: a line above.
            numbers: the columns whose cells stand at the right.
        """
        from rich.table import Table

        if title:
            self._console.print(title, style="bold", markup=False, soft_wrap=True)
        kept = [i for i in range(len(columns)) if any(str(row[i]) for row in rows)]
        columns, rows = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
        texts = [[name, *(str(row[i]) for row in rows)] for i, name in enumerate(columns)]
        widths = column_widths(texts, self.width - _GAP * (len(columns) - 1))
        if widths is None:
            self._records(columns, rows)
            return
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        for name, width in zip(columns, widths, strict=True):
            table.add_column(name, width=width, justify="right" if name in numbers else "left")
        for row in rows:
            table.add_row(*(styled(c, "") if isinstance(c, str) else c for c in row))
        self._console.print(table)

    def _records(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """The rows of a table one by one: the first cell, and below it the others by name."""
        for row in rows:
            self.say(row[0])
            for name, cell in zip(columns[1:], row[1:], strict=True):
                if str(cell):
                    self.say(cell, f"  {name}: ", indent=4)

    def say(self, text: Cell, label: str = "", style: str = "", indent: int = 0) -> None:
        """Prints a text, wrapped between words on a terminal.

        Args:
            text: what to print.
            label: what stands before it, in a style of its own.
            style: that of the label.
            indent: blanks before the lines after the first.
        """
        from rich.text import Text

        lines = _wrapped(f"{label}{text}", self.width, indent)
        whole = Text("\n".join(lines))
        if label and style:
            whole.stylize(style, 0, len(label.rstrip(": ")))
        if isinstance(text, Text) and text.style:
            whole.stylize(text.style, len(label))
        self._console.print(whole, soft_wrap=True)

    def blank(self) -> None:
        """Prints an empty line."""
        self._console.print()


def _console(stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if console.is_terminal:
        return console
    return Console(stderr=stderr, highlight=False, width=_ENDLESS)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """The lines of a text, none of which ends within a word."""
    found: list[str] = []
    for line in text.split("\n"):
        found += textwrap.wrap(
            line, width, subsequent_indent=" " * indent, break_long_words=False,
            break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False,
        ) or [""]  # fmt: skip
    return found


def column_widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """A width for each column that breaks no word; None where there is none.

    Args:
        columns: the cells of each.
        room: how many letters there are for all columns.
    """
    from rich.cells import cell_len

    least = [max(cell_len(w) for c in cells for w in (c.split() or [""])) for cells in columns]
    most = [max(cell_len(line) for c in cells for line in c.split("\n")) for cells in columns]
    spare = room - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    wanting = sorted(range(len(columns)), key=lambda i: most[i] - least[i])
    for place, index in enumerate(wanting):
        given = min(most[index] - least[index], spare // (len(wanting) - place))
        widths[index] += given
        spare -= given
    return widths


# ---------------------------------------------------------------- while work goes on
@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal what is being done, once it has taken two seconds.

    It goes to stderr, and away when something is printed, or else at the end.
    """
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    streams = sys.stdout, sys.stderr
    console.file = sys.stderr
    shown = _Shown(console, what)
    sys.stdout, sys.stderr = (cast("TextIO", _Heard(s, shown.end)) for s in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        shown.end()


class _Shown:
    """What is being done, shown after a while and until it ends.

    Args:
        console: where.
        what: what is being done.
    """

    def __init__(self, console: Console, what: str) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots", styled(f"{what} ...", ""), style="status.spinner")
        # Rich's own way would have what goes to stdout printed to stderr.
        self._live = Live(
            spinner, console=console, refresh_per_second=12.5, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._timer: threading.Timer | None = threading.Timer(_PATIENCE, self._live.start)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Shows nothing any more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()
            self._live.stop()


class _Heard:
    """A stream, and what is called before something is written to it.

    Args:
        stream: the stream.
        before: what is called.
    """

    def __init__(self, stream: TextIO, before: Callable[[], None]) -> None:
        self._stream, self._before = stream, before

    def write(self, text: str) -> int:
        """Writes."""
        self._before()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # whose owner writes past this object
            self._before()
        return getattr(self._stream, name)


@contextmanager
def counting(what: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """Shows on a terminal how far work has come, once it has taken two seconds.

    Args:
        what: what is counted.

    Yields:
        What is called at each: a word on it, its number, and how many there are if that is known.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = _console(stderr=True)
    columns: list[Any] = [TextColumn(what), BarColumn(), MofNCompleteColumn()]
    bar = Progress(
        *columns, TextColumn("{task.description}"), console=console, transient=True,
        redirect_stdout=False, redirect_stderr=False, disable=not console.is_terminal,
    )  # fmt: skip
    task = bar.add_task("", total=None)
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda word, number, total: bar.update(
            task, completed=number, total=total, description=word
        )
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
