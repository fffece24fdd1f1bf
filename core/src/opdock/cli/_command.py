"""What all commands have in common: an example, exit statuses, the keys of their JSON, and errors.

The exit status is 0 when a command did what it was asked for and found nothing wrong, 1 when it
found something, 2 when an option, a name or a file is wrong, and 130 after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from opdock import errors
from opdock.cli._report import as_json

__all__ = ["INTERRUPTED", "Command", "Wrong", "emit", "emit_text", "json_option"]

_STDOUT: Final = "opdock.stdout"
"""Where a context keeps the stdout that is for JSON alone."""

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells have it: 128 and the signal's number."""


class Wrong(click.ClickException):
    """What the user has given and cannot be: a name or a file. Ends a command with 2."""

    exit_code = 2
    command = "opdock"

    def show(self, file: Any = None) -> None:
        """Prints the message behind the command's name, on stderr."""
        click.echo(f"{self.command}: {self.message}", err=True)


class Command(click.Command):
    """A command of opdock.

    Args:
        example: a line that works, as people would type it.
        found: what exit status 1 says; empty for commands that look for nothing.
        status: what the exit status says instead of all that.
        keys: what `--json` prints, by key.
        each: what the keys belong to, where `--json` prints a list: "device".
    """

    def __init__(
        self, *args: Any, example: str, found: str = "", status: str = "",
        keys: Mapping[str, str] | None = None, each: str = "", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **options)
        self.example, self.keys, self.each = example, dict(keys or {}), each
        self.status = status or statuses(found)

    @property
    def printed(self) -> str:
        """What `--json` prints, before its keys."""
        return f"a list; of each {self.each}" if self.each else "an object"

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sections that opdock's commands have at the end of their help."""
        with formatter.section("Example"):
            formatter.write_text(self.example)
        if self.keys:
            with formatter.section(f"JSON ({self.printed})"):
                formatter.write_dl(list(self.keys.items()))
        with formatter.section("Exit status"):
            formatter.write_text(self.status)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; what is wrong is told in a line, behind its name."""
        try:
            with _reserved(_prints_json(ctx.params)):
                return super().invoke(ctx)
        except Wrong as e:
            e.command = ctx.command_path
            raise
        except errors.OpError as e:
            wrong = Wrong(e.message)
            wrong.command = ctx.command_path
            raise wrong from e


def statuses(found: str) -> str:
    """The exit statuses in a sentence."""
    one = f"1 {found}; " if found else ""
    return f"0 done; {one}2 an option, a name or a file is wrong; 130 after Ctrl-C."


json_option: Final = click.option("--json", "json_output", is_flag=True, help="Print JSON.")
"""The option that all commands have whose result programs may want."""


def emit(data: Any) -> None:
    """Prints records as JSON."""
    emit_text(as_json(data) + "\n")


def emit_text(text: str) -> None:
    """Prints what a program reads on stdout."""
    click.echo(text, nl=False, file=click.get_current_context().meta.get(_STDOUT))


def _prints_json(params: Mapping[str, Any]) -> bool:
    """Whether a command's options have it print JSON."""
    return bool(params.get("json_output")) or str(params.get("json_file")) == "-"


@contextlib.contextmanager
def _reserved(for_json: bool) -> Iterator[None]:
    """Has whatever else is printed meanwhile, by plugins for instance, go to stderr."""
    if not for_json:
        yield
        return
    click.get_current_context().meta[_STDOUT] = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        yield
