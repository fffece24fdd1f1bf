"""What of TensorFlow 1.15's public interface opdock has: as data, for the page and for commands."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, Literal

from opdock.mapping import libraries, names, op_gaps, removed, resolve

Status = Literal["there", "library", "planned", "out"]

# Module, or one name -> the reason why it is not meant to come.
OUT: Final[dict[str, str]] = {
    "autograph": "rewrites Python into graphs; TF 1 programs call tf.cond and tf.while_loop",
    "config": "settings of TF 2's runtime",
    "distribute": "strategies of TF 2; devices are placed with tf.device",
    "experimental": "settings of TF 2's runtime",
    "lite": "a converter for another runtime",
    "tpu": "needs a TPU's own runtime",
    "xla": "compilers are plugins; see docs/reference/plugin.md",
    "GradientTape": "eager execution; TF 1 programs call tf.gradients",
    "enable_eager_execution": "eager execution",
    "function": "eager execution",
    "saved_model.save": "functions of eager execution; tf.saved_model.Builder saves a session's",
    "saved_model.experimental": "functions of eager execution; see tf.saved_model.Builder",
    "saved_model.load_v2": "functions of eager execution; tf.saved_model.load loads its signatures",
    "wrap_function": "eager execution",
    "keras.experimental": "models of TF 2's time",
    "keras.mixed_precision": "models of TF 2's time",
    "errors.raise_exception_on_not_ok_status": "statuses of TF's C interface",
    "pywrap_tensorflow": "TF's C interface",
    "user_ops": "an op of TF's that is a joke",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One public name: its path without `tf.`, what it is, and whether opdock has it.

    "library" is said of names that are looked up in a library, installed or not: the entries are
    the same in every environment. The note is the library, the reason why a name is not meant to
    come, or of a planned one what it is for, where that is known.
    """

    path: str
    kind: names.Kind
    status: Status
    note: str = ""


def status_of(path: str) -> Entry | None:
    """The entry of a public path of TF 1.15's, or None where it has no such name."""
    module, _, name = path.rpartition(".")
    kind = names.table().public.get(module, {}).get(name)
    if kind is None:
        return None
    if resolve.without_libraries(path) is not resolve.MISSING:
        return Entry(path, kind, "there")
    if kind == "module" and _any_below(path):
        return Entry(path, kind, "there")
    parts = path.split(".")
    for place in (".".join(parts[: i + 1]) for i in range(len(parts))):
        if place in OUT:
            return Entry(path, kind, "out", OUT[place])
    if (library := libraries.library_of(path)) is not None:
        return Entry(path, kind, "library", library.distribution)
    gap = op_gaps.gap_of(name) if module == "raw_ops" else None
    if gap is None:
        return Entry(path, kind, "planned")
    return Entry(path, kind, "out" if gap.out else "planned", gap.why)


def _any_below(path: str) -> bool:
    below = names.table().public.get(path, {})
    return any(resolve.without_libraries(f"{path}.{name}") is not resolve.MISSING for name in below)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name of TF 1.15's, by path."""
    found = []
    for module, members in names.table().public.items():
        for name in members:
            entry = status_of(f"{module}.{name}".lstrip("."))
            if entry is not None:
                found.append(entry)
    return tuple(sorted(found, key=lambda e: e.path))


def op_of(path: str) -> str | None:
    """The type of the op that a public function is named after, as far as opdock has it."""
    module, _, name = path.rpartition(".")
    if status_of(path) is None or module.startswith("keras"):
        return None
    return resolve.op_type(name)


def covers(path: str) -> bool:
    """Whether a name below `tensorflow.`, public or internal, is there; members of classes too."""
    found: object = resolve.ModulePath("")
    for i, part in enumerate(parts := path.split(".")):
        if isinstance(found, resolve.ModulePath):
            found = resolve.lookup(found.path, part)
            if found is resolve.MISSING:
                return False
        else:
            return _has(found, parts[i:])
    return True


def _has(value: object, rest: list[str]) -> bool:
    """Whether a class or object has these attributes; what instances get is believed."""
    for part in rest:
        if not hasattr(value, part):
            return not isinstance(value, type) or part in getattr(value, "__slots__", ())
        value = getattr(value, part)
    return True


def told(path: str) -> str:
    """What is said of a name that is not there."""
    from opdock.mapping import missing

    module, _, name = path.rpartition(".")
    return removed.advice(path) or missing.why(resolve.plain(module), name)
