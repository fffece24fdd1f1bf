"""Finds what a name of TensorFlow's, public or internal, is called in opdock.

A look-up ends in one of three ways: the object, a module (`ModulePath`, which the caller makes), or
`MISSING`. Nothing is imported but the module that has the name.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from opdock import _api
from opdock.mapping import contrib_tables, libraries, names, removed, tables, v2_order


@dataclass(frozen=True, slots=True)
class ModulePath:
    """The name stands for a module of TF's."""

    path: str


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_V1_IN_V2: Final = "compat.v2.compat.v1"
_ROOT: Final = Path(__file__).parents[1]


def plain(path: str) -> str:
    """A path without the prefixes that all mean TF 1's public interface."""
    for prefix in ("_api.v1", "compat.v1", _V1_IN_V2):
        while path == prefix or path.startswith(f"{prefix}."):
            path = path[len(prefix) + 1 :]
    return path


def is_module(path: str) -> bool:
    """Whether TF 1.15 has a module of this path, or opdock has one in its place."""
    path = plain(path)
    known = names.table()
    if path == "compat.v2":
        return True
    if path.startswith("compat.v2."):
        return path.removeprefix("compat.v2.") in _v2_modules() or libraries.is_module(path)
    if path in known.public or known.is_internal(path) or path in tables.SOURCES:
        return True
    if libraries.is_module(path) or path in contrib_tables.BUILT_MODULES:
        return True
    return path.startswith(("contrib.", "python.", "examples.")) and _own(path) is not None


def lookup(path: str, name: str) -> Any:
    """The object that `tensorflow.<path>.<name>` is, a ModulePath, or MISSING."""
    if path == _V1_IN_V2 or path.startswith(f"{_V1_IN_V2}."):
        return _newer(f"{path.removeprefix('compat.v2.')}.{name}")
    path = plain(path)
    full = f"{path}.{name}".lstrip(".")
    if path == "compat.v2" or path.startswith("compat.v2."):
        return _v2(path.removeprefix("compat.v2").lstrip("."), name)
    found = _object(path, name)
    if found is MISSING or isinstance(found, ModuleType | ModulePath):
        return ModulePath(full) if is_module(full) else _other_module(path, name, found)
    return found


def _other_module(path: str, name: str, found: Any) -> Any:
    """A module counts if it is a public one, as in `tf.app.flags`, or if a table names it."""
    if name in tables.NAMES.get(path, {}) or not isinstance(found, ModuleType):
        return found
    if libraries.owns(found):
        return found
    for public_name, where in _api.SUBMODULES.items():
        if where == found.__name__ and public_name in names.table().public:
            return ModulePath(public_name)
    return MISSING


def _object(path: str, name: str) -> Any:
    if path in names.table().public:
        return public(f"{path}.{name}".lstrip("."))
    return internal(path, name)


def public(path: str) -> Any:
    """The object of a public path: an installed library's where a library has the module."""
    module, _, name = path.rpartition(".")
    if name not in tables.NAMES.get(module, {}):
        found = libraries.lookup(module, name, MISSING)
        if found is not MISSING:
            return found
    return without_libraries(path)


def without_libraries(path: str) -> Any:
    """The object of a public path, also where opdock has it under another of its public names."""
    known = names.table()
    module, _, name = path.rpartition(".")
    if name in tables.NAMES.get(module, {}):
        return at(tables.NAMES[module][name])
    for candidate in (path, *known.twins.get(path, ())):
        found = own(candidate)
        if found is not MISSING:
            return found
    op = known.op_of.get(path)
    if op is not None and (found := generated(op)) is not MISSING:
        return found
    return at(removed.NAMES[path]) if path in removed.NAMES else MISSING


def own(path: str) -> Any:
    """What stands at this public path, as it is written."""
    root: Any = importlib.import_module("opdock")
    first, *rest = path.split(".")
    try:
        value = root._written(first)
    except AttributeError:
        return MISSING
    for part in rest:
        value = _member(value, part)
        if value is MISSING:
            break
    return value


def _member(value: Any, name: str) -> Any:
    """An attribute as it is written, or a module of a package; no other public name of TF's."""
    if not isinstance(value, ModuleType):
        return getattr(value, name, MISSING)
    try:
        return ModuleType.__getattribute__(value, name)
    except AttributeError:
        module = f"{value.__name__}.{name}"
        if not hasattr(value, "__path__") or not _exists(module):
            return MISSING
        return importlib.import_module(module)


def generated(name: str) -> Any:
    """An op's generated function, by the op's type or by the function's name."""
    from opdock.api import raw_ops

    op = op_type(name)
    return MISSING if op is None else raw_ops.generated(op)


def op_type(name: str) -> str | None:
    """The op type that a name is, in whichever way it is spelt; None if opdock has no such op."""
    return _ops_by_key().get(name.replace("_", "").lower())


@functools.cache
def _ops_by_key() -> dict[str, str]:
    from opdock.graph.nodes import registry

    return {spec.name.replace("_", "").lower(): spec.name for spec in registry.all_ops(probes=True)}


def internal(path: str, name: str, seen: tuple[tuple[str, str], ...] = ()) -> Any:
    """The object of a name in TF's internal tree."""
    if (path, name) in seen:
        return MISSING
    seen = (*seen, (path, name))
    if name in tables.NAMES.get(path, {}) and not libraries.leads(path):
        return at(tables.NAMES[path][name])
    if not was_there(path, name):
        return MISSING
    # What contrib had is the library's where there is one, all of it, so that its parts are one.
    contrib = path.startswith("contrib.")
    first = contrib or libraries.leads(path)
    if first and (found := libraries.lookup(path, name, MISSING)) is not MISSING:
        return found
    if contrib and _is_only_a_module(path, name):
        return MISSING
    for source in sources(path):
        found = _member(importlib.import_module(source), name)
        if found is not MISSING:
            return found
    found = _known(path, name, seen)
    if found is MISSING and contrib:
        return _of_package(path, name, seen)
    if found is not MISSING or names.table().is_internal(f"{path}.{name}"):
        return found
    return libraries.lookup(path, name, MISSING)


def _of_package(path: str, name: str, seen: tuple[tuple[str, str], ...]) -> Any:
    """What the package of contrib's that a module is in has by the name, as it had from there."""
    package = ".".join(path.split(".")[:2])
    if path == package or name.startswith("_") or names.table().is_internal(f"{path}.{name}"):
        return MISSING
    found = internal(package, name, seen)
    return MISSING if isinstance(found, ModuleType | ModulePath) else found


def was_there(path: str, name: str) -> bool:
    """Whether TF's module had a public name, where it is known: libraries have more."""
    known = names.table()
    above, _, leaf = path.rpartition(".")
    if not known.is_internal(path) and (one := known.internal(above).imports.get(leaf)):
        path = ".".join(filter(None, one))
    kept = known.internal(path).kept
    return not kept or name in kept or name.startswith("_")


def home(path: str, name: str) -> tuple[ModuleType, str] | None:
    """The module of opdock that has a name of TF's internal tree, and what it calls it.

    None where the name is that of a public object, or of none that is there.
    """
    module, _, own_name = tables.NAMES.get(path, {}).get(name, "").partition(":")
    if own_name and module != "opdock":
        return importlib.import_module(module), own_name
    for source in sources(path) if path.startswith("python.") else ():
        found = importlib.import_module(source)
        if name in vars(found):
            return found, name
    return None


def _is_only_a_module(path: str, name: str) -> bool:
    """Whether a package of TF's has a module of the name, and nothing else that is called so."""
    known = names.table()
    if not known.is_internal(f"{path}.{name}"):
        return False
    record = known.internal(path)
    return not (record.stars or name in {*record.exports, *record.aliases, *record.imports})


def _known(path: str, name: str, seen: tuple[tuple[str, str], ...]) -> Any:
    """What the record of a module of TF's says of the name."""
    record = names.table().internal(path)
    # Where TF 2's function has the plain name, 1's takes all that it does.
    newer = name in record.v2_only and name.endswith("_v2")
    for target in record.exports.get(name, ()):
        module, _, there = target.rpartition(".")
        found = _v2(module, there) if newer else public(target)
        if found is not MISSING and not isinstance(found, ModuleType):
            return found
    if name in record.aliases:
        return internal(path, record.aliases[name], seen)
    if name in record.imports:
        module, there = record.imports[name]
        return _imported(module, there, seen)
    # A later import hides what an earlier one brought, but for generated functions, which TF
    # hides where a module before has the public one: nn_ops' fused_batch_norm is nn_impl's in nn.
    exported = names.table().internal
    latest_first = record.stars[::-1]
    for star in sorted(latest_first, key=lambda star: name not in exported(star).exports):
        found = internal(star, name, seen)
        if found is not MISSING:
            return found
    # What a module takes with a star has the modules too that it imports itself.
    if record.stars and names.table().is_internal(f"python.ops.{name}"):
        return ModulePath(f"python.ops.{name}")
    if path == "python.ops":  # in TF, `from tensorflow.python import ops` is the framework's
        return internal("python.framework.ops", name, seen)
    leaf = path.rpartition(".")[2]
    if (leaf.startswith("gen_") and leaf.endswith("_ops")) or path in contrib_tables.GENERATED:
        return _of_generator(name)
    return MISSING


def _of_generator(name: str) -> Any:
    """An op's function in a generated module, which may be a public one.

    By the op's type itself it takes keyword arguments alone, as those of `tf.raw_ops` do.
    """
    if name[:1].isupper() and op_type(name) == name:
        from opdock.api import raw_ops

        found = getattr(raw_ops, name, MISSING)
        if found is not MISSING:
            return found
    for path in names.table().ops.get(op_type(name) or "", ()):
        found = own(path)
        if found is not MISSING:
            return found
    return generated(name)


def _imported(module: str, there: str, seen: tuple[tuple[str, str], ...]) -> Any:
    if not there:
        return ModulePath(module)
    if plain(module) in names.table().public:
        return public(f"{plain(module)}.{there}".lstrip("."))
    return internal(module, there, seen)


def _newer(path: str) -> Any:
    """A name of the `tf.compat.v1` that TF 2 has: 1.15's but for some that are newer."""
    if path in tables.V2:
        return at(tables.V2[path])
    module, _, name = path.rpartition(".")
    found = lookup(module, name)
    return ModulePath(f"compat.v2.{path}") if isinstance(found, ModulePath) else found


def _v2(path: str, name: str) -> Any:
    full = f"{path}.{name}".lstrip(".")
    known = names.table()
    if libraries.leads(f"compat.v2.{path}"):
        found = libraries.lookup(f"compat.v2.{path}", name, MISSING)
    elif full in tables.V2:
        found = at(tables.V2[full])
    else:
        target = known.v2.get(full)
        found = public(target) if target is not None else MISSING
    if found is not MISSING and full in known.v2_order:
        return v2_order.adapted(full, found)
    if (found is MISSING and full in _v2_modules()) or libraries.is_module(f"compat.v2.{full}"):
        return ModulePath(f"compat.v2.{full}")
    return found


@functools.cache
def _v2_modules() -> frozenset[str]:
    """Modules of TF 2's interface in 1.15, as far as they have a name that 1.x's serve."""
    found = {"compat.v1"}
    for path in (*names.table().v2, *tables.V2):
        parts = path.split(".")[:-1]
        found |= {".".join(parts[: i + 1]) for i in range(len(parts))}
    return frozenset(found)


@functools.cache
def sources(path: str) -> tuple[str, ...]:
    """The modules of opdock in which the names of a module of TF's are looked up, in this order."""
    found = list(tables.SOURCES.get(path, ()))
    mine = _own(path)
    if mine is not None:
        found.insert(0, mine)
    elif path.startswith("contrib."):
        package = path
        while package.count(".") > 1 and _own(package) is None:
            package = package.rpartition(".")[0]
        if (nearest := _own(package)) is not None:
            # contrib.opt.python.training.shampoo: the module of this name, then the package.
            inner = _own(f"{package}.{path.rpartition('.')[2]}")
            found += [inner, nearest] if inner is not None else [nearest]
    leaf = path.rpartition(".")[2]
    if leaf.endswith("_pb2"):
        found += [f"tensorboard.compat.proto.{leaf}", "opdock.io.protos", "opdock.io.proto_schema"]
    return tuple(name for name in found if _exists(name))


def _own(path: str) -> str | None:
    """The name of opdock's own module of this path, if there is a file."""
    if path == "python":  # it asks here itself
        return None
    return f"opdock.{path}" if _exists(f"opdock.{path}") else None


@functools.cache
def _exists(module: str) -> bool:
    """Whether there is a file for this module."""
    if not module.startswith("opdock."):
        return importlib.util.find_spec(module) is not None
    place = _ROOT.joinpath(*module.split(".")[1:])
    return place.with_name(f"{place.name}.py").exists() or (place / "__init__.py").exists()


def at(place: str) -> Any:
    """The object at "module:name"; the module where there is no name."""
    module, _, name = place.partition(":")
    if module == "opdock":
        return public(name)
    if not _exists(module):
        return MISSING
    found: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = _member(found, part)
    return found
