"""The names of TensorFlow 1.15: its public interface, and the modules of its internal tree.

They come from the table that `tools/make_tf_names.py` writes, whose docstring has the format. Paths
have no leading `tensorflow.`; the root is the empty path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Final, Literal

Kind = Literal["function", "class", "value", "module"]
_MARKS: Final[dict[str, Kind]] = {"/": "module", ")": "class", ".": "value"}


@dataclass(frozen=True, slots=True)
class Internal:
    """One module of TF's internal tree: what its names are called elsewhere."""

    exports: dict[str, tuple[str, ...]] = field(default_factory=dict)  # public paths, 1.x's first
    v2_only: frozenset[str] = frozenset()  # names that are exported to TF 2 alone
    aliases: dict[str, str] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # module, name there or ""
    stars: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()


class Names:
    """The whole table; a module's record is read when it is asked for."""

    def __init__(self, text: str) -> None:
        self.public: dict[str, dict[str, Kind]] = {}
        self.classes: dict[str, tuple[str, ...]] = {}
        self.v2: dict[str, str] = {}
        self.v2_order: dict[str, tuple[str, ...]] = {}
        self.ops: dict[str, tuple[str, ...]] = {}
        self._internal: dict[str, list[str]] = {}
        for line in text.splitlines():
            kind, first, *words = line.split(" ")
            if kind == "public":
                self.public["" if first == "." else first] = dict(map(_marked, words))
            elif kind == "class":
                self.classes[first] = tuple(words)
            elif kind == "v2":
                self.v2 |= dict(_pair(w) for w in (first, *words))
            elif kind == "order":
                self.v2_order[first] = tuple(words)
            elif kind == "op":
                pairs = (w.split("=") for w in (first, *words))
                self.ops |= {op: tuple(public.split("|")) for op, public in pairs}
            else:
                self._internal[first] = words
        self.public.setdefault("flags", {})  # Abseil's, which the golden files leave out
        self.public["compat"] |= {"v1": "module", "v2": "module"}

    def is_internal(self, path: str) -> bool:
        """Whether TF's tree has this module."""
        return path in self._internal

    def has(self, path: str) -> bool:
        """Whether TensorFlow 1.15 has a name; of its internal modules any name is believed."""
        while path.startswith("compat.v1."):
            path = path.removeprefix("compat.v1.")
        later = path.removeprefix("compat.v2.")
        if later != path:
            return not self.later.isdisjoint(_heads(later))
        if any(map(self.is_internal, _heads(path))):
            return self._has_internal(path)
        module, rest = "", path
        while rest:
            name, _, rest = rest.partition(".")
            kind = self.public.get(module, {}).get(name)
            module = f"{module}.{name}".lstrip(".")
            if kind != "module":
                return kind is not None
        return True

    def _has_internal(self, path: str) -> bool:
        module = next(filter(self.is_internal, _heads(path)))
        name = path.removeprefix(module).strip(".").partition(".")[0]
        if not name or not any(other.startswith(f"{module}.") for other in self._internal):
            return True
        # A package has the names that it imports, and not any module.
        known = self.internal(module)
        return name in {*known.exports, *known.aliases, *known.imports, *known.kept}

    def internal_modules(self) -> Iterator[str]:
        """All modules of TF's tree."""
        return iter(self._internal)

    @functools.cache  # noqa: B019 - there is one table
    def internal(self, path: str) -> Internal:
        """What a module of TF's tree calls what; empty for one of which nothing is known."""
        exports: dict[str, tuple[str, ...]] = {}
        aliases: dict[str, str] = {}
        imports: dict[str, tuple[str, str]] = {}
        stars = []
        kept = []
        v2_only = set()
        for word in self._internal.get(path, ()):
            if word.startswith("*"):
                stars.append(word[1:])
            elif word.startswith("+"):
                kept.append(word[1:])
            elif "=" in word:
                name, _, found = word.partition("=")
                public = found.split("|")
                first = [p for p in public if not p.startswith("~")]
                exports[name] = tuple(first or (p[1:] for p in public))
                if not first:
                    v2_only.add(name)
            elif "<" in word:
                name, _, where = word.partition("<")
                module, _, there = where.partition(":")
                imports[name] = (module, there)
            else:
                name, _, aliases[name] = word.partition("@")
        return Internal(
            exports, frozenset(v2_only), aliases, imports, tuple(stars), frozenset(kept)
        )

    @functools.cached_property
    def later(self) -> frozenset[str]:
        """The names of `tf.compat.v2`."""
        groups = [self.internal(path) for path in self._internal if path.startswith("python.")]
        own = (path for i in groups for name in i.v2_only for path in i.exports[name])
        return frozenset({*self.v2, *own})

    @functools.cached_property
    def twins(self) -> dict[str, tuple[str, ...]]:
        """Public path -> the other public paths of the same object."""
        found: dict[str, set[str]] = {}
        groups = [self.internal(path) for path in self._internal if path.startswith("python.")]
        same = [e for i in groups for n, e in i.exports.items() if n not in i.v2_only]
        for group in (*same, *self.ops.values()):
            for path in group:
                found.setdefault(path, set()).update(group)
        return {path: tuple(sorted(all_ - {path})) for path, all_ in found.items()}

    @functools.cached_property
    def op_of(self) -> dict[str, str]:
        """Public function -> the op type whose generated function it is."""
        return {path: op for op, paths in self.ops.items() for path in paths}


def _heads(path: str) -> Iterator[str]:
    """A path, and all that it is below."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _marked(word: str) -> tuple[str, Kind]:
    return word.rstrip("/()."), _MARKS.get(word[-1], "function")


def _pair(word: str) -> tuple[str, str]:
    name, _, target = word.partition("=")
    return name, target or name


@functools.cache
def table() -> Names:
    """The names of TensorFlow 1.15."""
    folder = resources.files("opdock.mapping")
    parts = ("tf115.txt", "tf115_modules.txt")
    return Names("".join(folder.joinpath(p).read_text(encoding="utf-8") for p in parts))
