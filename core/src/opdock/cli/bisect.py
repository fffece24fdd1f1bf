"""`opdock bisect GRAPH`: the first op at which two devices disagree, as a case to run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._graphs import Shape, Wish, fed, opened
from opdock.cli._screen import working
from opdock.io.array_files import Arrays

if TYPE_CHECKING:
    from opdock.runtime.inspect.bisect import Bisection

_KEYS: Final = {
    "device": "the device that is looked at",
    "against": "the device whose values count as right",
    "checked": "how many ops ran by themselves",
    "skipped": "ops that could not, with the reasons",
    "first": "of the first op that differs: op, type, line, alone (whether it is wrong by itself), "
    "error, absolute, relative, and the case's file; null if none does",
}
_INTEGERS: Final = 4
"""Drawn integers lie below this, as most index something or count."""


@click.command(
    "bisect", cls=Command, example="opdock bisect graph.pb --device cpu:0 --feed x=2,4",
    keys=_KEYS, found="the devices disagree",
)  # fmt: skip
@click.argument("graph", type=click.Path(exists=True, path_type=Path))
@click.option("--device", required=True, help="The device that is looked at.")
@click.option("--against", default="cpu:0", show_default=True, help="Whose values are right.")
@click.option(
    "--fetch", "fetches", multiple=True, help="Tensor or op to run (default: the outputs)."
)
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=2,3",
    help="Shape of a placeholder (default: 1s), whose values are drawn.",
)  # fmt: skip
@click.option(
    "--values", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An .npz file with values of placeholders, by name.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the values drawn.")
@click.option("--rtol", type=float, help="Relative slack, in place of that of each type.")
@click.option("--atol", type=float, help="Absolute slack likewise.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path),
    help="The case to write (default: opdock-case-<op>.npz).",
)  # fmt: skip
@json_option
def command(
    graph: Path,
    device: str,
    against: str,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    values: Path | None,
    seed: int,
    rtol: float | None,
    atol: float | None,
    save: Path | None,
    json_output: bool,
) -> None:
    """Find the first op of a GraphDef or SavedModel that two devices compute differently.

    Each op runs by itself on the device, with the inputs that it has on the other one; then all
    of them run together. The op that is found is saved as a case for `opdock replay-case`.
    """
    try:
        with working(f"comparing {device} with {against}"), opened(graph, Wish(fetches)) as found:
            session, wanted = found
            given = fed(wanted, feeds, _drawn(seed)) | _stored(values, session.graph)
            kept = None if save is None else str(save)
            result = session.bisect(
                wanted, against, device, given, save=kept, rtol=rtol, atol=atol
            )  # fmt: skip
    except (ValueError, KeyError, TypeError, OSError, RuntimeError) as e:
        raise Wrong(str(e.args[0] if isinstance(e, KeyError) else e)) from e
    if json_output:
        emit(_plain(result))
    else:
        click.echo(str(result))
    raise SystemExit(1 if result else 0)


def _drawn(seed: int) -> Any:
    """What draws values: from a normal distribution, small integers, or either truth."""
    import numpy as np

    rng = np.random.default_rng(seed)

    def draw(dtype: Any, shape: Shape) -> Any:
        if dtype.name == "string":
            return np.full(shape, b"", object)
        if dtype.is_bool or dtype.is_integer:
            return rng.integers(0, 2 if dtype.is_bool else _INTEGERS, shape).astype(dtype.np)
        return rng.standard_normal(shape).astype(dtype.np)

    return draw


def _stored(values: Path | None, graph: Any) -> dict[Any, Any]:
    """The values of a file, by tensor."""
    if values is None:
        return {}
    with Arrays(values) as arrays:
        names = {name: name if ":" in name else f"{name}:0" for name in arrays}
        return {graph.as_graph_element(tensor): arrays[name] for name, tensor in names.items()}


def _plain(result: Bisection) -> dict[str, Any]:
    first = result.first
    return {
        "device": result.device_b,
        "against": result.device_a,
        "checked": result.checked,
        "skipped": result.skipped,
        "first": first and {
            **{key: getattr(first, key) for key in ("op", "type", "line", "alone", "error")},
            "absolute": first.largest[0],
            "relative": first.largest[1],
            "case": None if first.path is None else str(first.path),
        },
    }  # fmt: skip
