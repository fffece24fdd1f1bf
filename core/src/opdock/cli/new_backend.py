"""`opdock new-backend`: writes the package of a new backend, whose tests say what to do next."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click

from opdock import errors

_SUFFIX: Final = ".tmpl"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = frozenset({"core", "cpu", "gpu", "host", "testing", "tpu"})
# Names that tools would take for their own where the templates lie.
_RENAMED: Final = {
    "gitignore": ".gitignore", "github": ".github", "conformance.py": "test_conformance.py",
}  # fmt: skip


@click.command("new-backend")
@click.argument("name")
@click.option(
    "--dir", "folder", default=".", show_default=True,
    type=click.Path(file_okay=False, path_type=Path), help="Where to make the folder opdock-NAME.",
)  # fmt: skip
def command(name: str, folder: Path) -> None:
    """Write the package of a new backend: device, kernels, tests, CI file.

    NAME is the backend's name: lower case letters, digits and underscores. The devices will be
    called /device:NAME:0 and so on.
    """
    try:
        made = create(name, folder)
    except errors.OpError as e:
        raise click.ClickException(e.message) from None
    click.echo(f"{made} is a package whose tests say what to do next:\n")
    click.echo(f'    cd {made}\n    pip install -e ".[test]"\n    pytest')


def create(name: str, folder: Path) -> Path:
    """Writes the package `opdock-NAME` into `folder`, whole or not at all.

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
    if not folder.is_dir():
        raise errors.NotFoundError(None, None, f"--dir {folder} is no folder; make it first.")
    target = folder / dist
    if target.exists():
        raise errors.AlreadyExistsError(
            None, None, f"{target} exists already. Move it away, or name another --dir."
        )
    scratch = Path(tempfile.mkdtemp(prefix=f".{dist}-", dir=folder))
    try:
        for path, text in _files(words):
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


def _files(words: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Every file of the package: its place in the folder, and its text."""
    root = resources.files("opdock.cli") / "templates" / "backend"
    for parts, source in sorted(_walk(root, ()), key=lambda found: found[0]):
        text = source.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        names = [words["@package@"] if p == "package" else _RENAMED.get(p, p) for p in parts]
        yield Path(*names), text


def _walk(
    folder: Traversable, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, (*above, entry.name))
        elif entry.name.endswith(_SUFFIX):
            yield (*above, entry.name.removesuffix(_SUFFIX)), entry
