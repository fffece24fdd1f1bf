"""`opdock replay-case`: runs a saved case again and compares its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from opdock import errors
from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._screen import working

if TYPE_CHECKING:
    from opdock.runtime.inspect.cases import Case

_KEYS: Final = {
    "device": "where it ran",
    "about": "what is known of the case, by key",
    "problem": "what differs from what the case expects; empty if nothing does",
}


@click.command(
    "replay-case", cls=Command, example="opdock replay-case case.npz --device cpu:0", keys=_KEYS,
    found="the results are not what the case expects",
)  # fmt: skip
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--device", default="cpu:0", show_default=True, help="Where to run the case.")
@click.option("--soft/--no-soft", default=True, show_default=True, help="Soft placement.")
@json_option
def command(file: Path, device: str, soft: bool, json_output: bool) -> None:
    """Run a case that `Session.bisect` or the fuzz level saved, and compare its results."""
    from opdock.runtime.inspect.cases import load_case

    try:
        case = load_case(file)
    except (OSError, ValueError) as e:
        raise Wrong(str(e)) from None
    for line in () if json_output else _described(case):
        click.echo(line)
    try:
        with working(f"running the case on {device}"):
            problem = case.difference(case.run(device, soft))
    except errors.OpError as e:
        problem = f"{type(e).__name__}: {e.message}"
    except ValueError as e:
        raise Wrong(str(e)) from None
    if json_output:
        emit({"device": device, "about": case.about, "problem": problem})
    else:
        click.echo(f"{device}: {problem or 'as expected'}")
    if problem:
        raise SystemExit(1)


def _described(case: Case) -> list[str]:
    """What the case is about, its ops and its inputs."""
    lines = [f"{key}: {value}" for key, value in case.about.items() if value]
    ops = [n for n in case.graph_def.node if n.op != "Placeholder"]
    lines.append(f"ops: {', '.join(f'{n.name} ({n.op})' for n in ops)}")
    for name, array in case.feeds.items():
        lines.append(f"input {name}: {array.dtype.name}{list(array.shape)}")
    return lines
