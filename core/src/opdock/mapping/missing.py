"""What a program is told that asks for a name which opdock does not have."""

from __future__ import annotations

from types import ModuleType

from opdock.codes import coded
from opdock.mapping import absent, left_out, libraries, listing, names, op_gaps, removed, resolve
from opdock.nearest import meant, nearest

PAGE = "docs/reference/coverage.md"
CONTRIB_PAGE = "docs/how-to/run-tf1-programs.md"


def attribute_error(module: ModuleType | str, path: str, name: str) -> AttributeError:
    """The error of `module.name`."""
    called = module if isinstance(module, str) else module.__name__
    text = f"module {called!r} has no attribute {name!r}: {why(resolve.plain(path), name)}"
    return AttributeError(text, name=name)


def import_error(name: str) -> ImportError:
    """The error of `from package import name`, given as "package.name"."""
    package, _, last = name.rpartition(".")
    path = resolve.plain(package.partition(".")[2])
    return ImportError(f"cannot import name {last!r} from {package!r}: {why(path, last)}")


def why(path: str, name: str) -> str:
    """Why `tensorflow.<path>.<name>` is not there, and what to do."""
    full = f"{path}.{name}".lstrip(".")
    told = removed.advice(full)
    if told:
        return told
    hint = libraries.hint(path, name)
    if hint:
        return hint
    if (why_not := absent.reason(full)) is not None:
        return coded("OPD-NAME-002", f"opdock leaves tf.{full} out: {why_not}")
    if name in names.table().public.get(path, {}):
        if (why_not := left_out.reason(full)) is not None:
            return coded("OPD-NAME-002", f"opdock leaves tf.{full} out: {why_not}")
        gap = op_gaps.gap_of(name) if path == "raw_ops" else None
        if gap is not None and gap.out:
            return coded("OPD-NAME-002", f"opdock leaves tf.{full} out: {gap.why}")
        told = f"opdock does not cover tf.{full} yet ({PAGE} says what is planned)"
        return coded("OPD-NAME-001", told)
    if path.startswith("contrib") and (why_not := left_out.reason(full)) is not None:
        package = left_out.place(full)
        told = f"opdock leaves tf.{package} out: {why_not} ({CONTRIB_PAGE} lists all that is out)"
        return coded("OPD-NAME-002", told)
    if path.startswith("compat.v2"):
        return "opdock is TensorFlow 1's interface; of TF 2's it has the names that 1.x shares"
    found = _elsewhere(name)
    there = [
        other
        for other in found
        if resolve.without_libraries(other) is not resolve.MISSING or left_out.reason(other) is None
    ]
    if found and not there:
        why_not = left_out.reason(found[0])
        return coded("OPD-NAME-002", f"opdock leaves tf.{found[0]} out: {why_not}")
    elsewhere = " and ".join(f"tf.{other}" for other in there[:2])
    if path.startswith(("python", "contrib", "core", "tools", "examples", "lite")):
        return coded("OPD-NAME-003", _internal(path, name, elsewhere))
    if elsewhere:
        return f"TensorFlow 1.15 has no tf.{full}; it has {elsewhere}"
    known = names.table().public.get(path, {})
    return f"TensorFlow 1.15 has no tf.{full} either{meant(name, known)}"


def _internal(path: str, name: str, elsewhere: str) -> str:
    if elsewhere:
        return f"opdock has no tf.{path}.{name}; it has {elsewhere}"
    # Some of these modules are long: the name must be much alike to be the one that was meant.
    like = nearest(name, listing.public_names(path), 0.75)
    if like:
        return f"opdock maps no such internal name; did you mean {like!r}?"
    return f"opdock does not map this internal name; a public one, if there is any, is in {PAGE}"


def _elsewhere(name: str) -> list[str]:
    """The public names that end like this one."""
    every = names.table().public.items()
    return [f"{module}.{name}".lstrip(".") for module, known in every if name in known]
