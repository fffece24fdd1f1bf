"""Which names there are in a module of TensorFlow's, as `dir` and star imports give them."""

from __future__ import annotations

import importlib

from opdock.mapping import libraries, names, resolve, tables


def public_names(path: str) -> list[str]:
    """The public names of TF's module that opdock has; all that a star import gives."""
    path = resolve.plain(path)
    known = names.table()
    if path.startswith("compat.v2"):
        prefix = path.removeprefix("compat.v2").lstrip(".")
        below = [n for n in known.v2 if n.rpartition(".")[0] == prefix]
        found = [n.rpartition(".")[2] for n in below]
    elif known.public.get(path):
        found = list(known.public[path])
    else:
        found = _internal_names(path)
    return sorted(n for n in found if resolve.lookup(path, n) is not resolve.MISSING)


def _internal_names(path: str) -> list[str]:
    record = names.table().internal(path)
    found = {*libraries.public_names(path)} if path.startswith("contrib.") else set()
    found |= {*record.exports, *record.aliases, *record.imports, *tables.NAMES.get(path, {})}
    for star in record.stars:
        found.update(_internal_names(star))
    for source in resolve.sources(path):
        module = importlib.import_module(source)
        listed = getattr(module, "__all__", None) or dir(module)
        found.update(n for n in listed if not n.startswith("_"))
    return sorted(n for n in found if not n.startswith("_"))
