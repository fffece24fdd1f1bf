"""`opdock new-backend`: writes the package of a new backend, whose tests say what to do next."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Final

import click

from opdock import errors
from opdock.cli._command import Command, emit, json_option

_SUFFIX: Final = ".tmpl"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = frozenset({"core", "cpu", "gpu", "host", "testing", "tpu"})


@dataclass(frozen=True)
class _Start:
    """What a package begins with.

    Attributes:
        about: one line for people.
        parts: folders of templates that it has beside what all packages have.
        order: what its tests ask for, for the README.
        words: what stands in the common templates for it.
    """

    about: str
    parts: tuple[str, ...]
    order: str
    words: MappingProxyType[str, str]


_ARRAYS: Final = {
    "@requires@": ', "array-api-compat>=1.10"', "@compiler@": "", "@steps@": "LEVELS",
}  # fmt: skip
STARTS: Final = MappingProxyType({
    "namespace": _Start(
        "an array library with NumPy's functions computes on the device",
        ("namespace",),
        "first the device (`device.py`), which by its array namespace has core's portable\n"
        "kernels; `kernels.py` is for what it computes faster itself.",
        MappingProxyType(_ARRAYS),
    ),
    "kernels": _Start(
        "there is no array library: kernels are written one by one",
        ("kernels",),
        "first the device (`device.py`), then the ops of the bring-up set, one after the other\n"
        "(`kernels.py`), then all that `kernels.py` claims, gradients, programs, fusion, runtime.",
        MappingProxyType({"@requires@": "", "@compiler@": "", "@steps@": "LEVELS"}),
    ),
    "compiler": _Start(
        "a compiler takes whole programs, by tracing",
        ("namespace", "compiler"),
        "first the device (`device.py`), which by its array namespace has core's portable\n"
        "kernels, then the compiler (`compiler.py`), which gets whole programs of them.",
        MappingProxyType(_ARRAYS | {
            "@compiler@": '\n        compiler="@package@.compiler:compile_segment",',
            "@steps@": "WITH_SEGMENTS",
        }),
    ),
})  # fmt: skip
"""The ways to begin, the most usual first."""

# Names that tools would take for their own where the templates lie.
_RENAMED: Final = {
    "gitignore": ".gitignore", "github": ".github", "conformance.py": "test_conformance.py",
}  # fmt: skip


@click.command(
    "new-backend", cls=Command, example="opdock new-backend mychip --start namespace",
    keys={"folder": "the package that was written", "files": "what is in it"},
)  # fmt: skip
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to make the folder opdock-NAME.",
)
@click.option(
    "--start", type=click.Choice(list(STARTS)),
    help="What it begins with; asked for on a terminal, else namespace.",
)  # fmt: skip
@json_option
def command(name: str, folder: Path, start: str | None, json_output: bool) -> None:
    """Write the package of a new backend: device, kernels, tests, CI file.

    NAME is the backend's name: lower case letters, digits and underscores. The devices will be
    called /device:NAME:0 and so on.
    """
    _check(name)
    made = create(name, folder, start or (next(iter(STARTS)) if json_output else _asked()))
    if json_output:
        files = sorted(str(p.relative_to(made)) for p in made.rglob("*") if p.is_file())
        emit({"folder": str(made), "files": files})
        return
    click.echo(f"{made} is a package whose tests say what to do next:\n")
    click.echo(f'    cd {made}\n    pip install -e ".[test]"\n    pytest')


def _asked() -> str:
    """What the user says that the package begins with; the usual where nobody can be asked."""
    usual = next(iter(STARTS))
    if not _is_terminal():
        return usual
    for start, what in STARTS.items():
        click.echo(f"  {start:<10} {what.about}")
    chosen: str = click.prompt("Start with", type=click.Choice(list(STARTS)), default=usual)
    return chosen


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def create(name: str, folder: Path, start: str = "namespace") -> Path:
    """Writes the package `opdock-NAME` into `folder`, whole or not at all.

    Args:
        name: the backend's name.
        folder: where to make the package's own folder.
        start: one of `STARTS`.

    Returns:
        The new folder.

    Raises:
        InvalidArgumentError: the name is no backend's name.
        AlreadyExistsError: the name is taken by an installed backend, or the folder exists.
        NotFoundError: `folder` does not exist.
    """
    _check(name)
    dist = f"opdock-{name.replace('_', '-')}"
    words = {
        "@name@": name, "@NAME@": name.upper(), "@dist@": dist, "@package@": f"opdock_{name}",
        "@Name@": "".join(part.capitalize() for part in name.split("_")),
    }  # fmt: skip
    words = {**STARTS[start].words, "@order@": STARTS[start].order} | words
    if not folder.is_dir():
        raise errors.NotFoundError(None, None, f"--dir {folder} is no folder; make it first.")
    target = folder / dist
    if target.exists():
        raise errors.AlreadyExistsError(
            None, None, f"{target} exists already. Move it away, or name another --dir."
        )
    scratch = Path(tempfile.mkdtemp(prefix=f".{dist}-", dir=folder))
    try:
        for path, text in _files(words, STARTS[start].parts):
            place = scratch / dist / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        (scratch / dist).rename(target)
    finally:
        shutil.rmtree(scratch)
    return target


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name.endswith("_"):
        raise errors.InvalidArgumentError(
            None, None,
            f"{name!r} cannot name a backend: it must be an identifier of lower case letters, "
            "digits and underscores that begins with a letter, for instance 'mychip'.",
        )  # fmt: skip
    if name in _RESERVED:
        raise errors.InvalidArgumentError(
            None, None,
            f"{name!r} has a meaning of its own in opdock. Name the backend after the hardware or "
            "its driver; it may join the pool of another device type by BackendSpec.device_type.",
        )  # fmt: skip
    from opdock.plugins.manager import get_manager

    for plugin in get_manager().status():
        names = {plugin.name, *(b.name for b in plugin.backends)}
        if name in names:
            raise errors.AlreadyExistsError(
                None, None,
                f"The backend {name!r} is installed already, by {plugin.distribution or 'a file'}. "
                "Choose another name, or uninstall that distribution.",
            )  # fmt: skip
    if importlib.util.find_spec(f"opdock_{name}") is not None:
        raise errors.AlreadyExistsError(
            None, None, f"A package opdock_{name} can be imported already; choose another name."
        )


def _files(words: dict[str, str], parts: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Every file of the package: its place in the folder, and its text."""
    root = resources.files("opdock.cli") / "templates"
    folders = [root / "backend", *(root / "starts" / part for part in parts)]
    found = [file for folder in folders for file in _walk(folder, ())]
    for place, source in sorted(found, key=lambda file: file[0]):
        text = source.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        names = [words["@package@"] if p == "package" else _RENAMED.get(p, p) for p in place]
        yield Path(*names), text


def _walk(
    folder: Traversable, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, (*above, entry.name))
        elif entry.name.endswith(_SUFFIX):
            yield (*above, entry.name.removesuffix(_SUFFIX)), entry
