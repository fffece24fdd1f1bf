"""Writes docs/reference/: what plugins may import, and the command line, from docstrings and help.

Run `make reference` after a change; a test fails when a page is stale or a name is missing.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

FOLDER = Path(__file__).resolve().parent.parent / "docs/reference"

# The names of `opdock.plugin` by subject.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Plugins": ("API_VERSION", "hookimpl", "register", "unregister", "load", "PluginError"),
    "Backends and devices": (
        "BackendSpec", "Probe", "DeviceAttributes", "Device", "BaseDevice", "Buffer", "MemoryStats",
        "KernelTime", "RecordingDevice", "Recording", "ArenaDevice", "LimitedDevice", "CopyRoute",
        "HOST", "deterministic", "sheltered", "finalizer", "Turn", "announced", "Announcement",
        "installed_files",
    ),
    "Kernels": (
        "Kernel", "KernelTable", "KernelModule", "NodeSig", "KernelContext", "Cell", "Resources",
        "RandomStream", "random_stream", "flat_inputs", "flat_outputs", "infer_shapes",
        "Rejection", "note", "heard",
    ),
    "Segments": (
        "Segment", "SegmentNode", "SegmentValue", "SegmentVariable", "SegmentStream",
        "HeldVariable", "Refusal", "Executable", "Loan", "SegmentCompiler", "record_segment",
    ),
    "Portable kernels": ("portable", "mount", "Exclusion", "NumpyNamespace"),
    "Fusion": ("FusionPattern", "FusionModule", "P", "CLUSTER", "OPEN_CLUSTER", "TURNS", "UPDATES"),
    "Graphs": (
        "GraphPass", "GraphTransform", "GraphView", "NodeView", "ValueView", "Candidate",
    ),
    "Ops": ("define_op", "OpSpec", "ShapeSig", "PartialShape", "find_op", "all_ops"),
    "Traits": (
        "Traits", "Control", "Cost", "Fails", "Formatted", "Elementwise", "Reduction", "DropsAxes",
        "PerAxis", "AlongAxis", "Moves",
    ),
    "Clusters": (
        "ClusterEngineSpec", "ClusterEngine", "Serving", "Channel", "Packet", "Handle", "Asker",
    ),
    "Conformance": ("Requirement", "ToleranceRow"),
    "Element types": (
        "DType", "as_dtype", "ALL", "NUMBERS", "REALS", "FLOATS", "COMPLEX", "INTS", "SIGNED",
        "UNSIGNED", "QUANTIZED",
    ),
    "Modules": (
        "dtypes", "errors", "axes", "windows", "cells", "checks", "philox", "codegen",
        "host_ops", "tracing", "kept",
    ),
}  # fmt: skip
# What a value says of itself nowhere.
VALUES: dict[str, str] = {
    "API_VERSION": "The version of the plugin API, (major, minor), independent of any release's.",
    "hookimpl": "Marks a function as the implementation of the hook whose name it has.",
    "HOST": "Stands for host memory as an end of a `CopyRoute`.",
    "Handle": "What a task makes of a `Packet`, which is another. It raises nothing, may take as "
    "long as a step does, and is called by many threads at once.",
    "CLUSTER": "The op type of elementwise clusters: a backend with a kernel for it gets them.",
    "OPEN_CLUSTER": "The op type of elementwise clusters whose sizes come with each step: a "
    "backend with a kernel for it gets them.",
    "READ": "Mark of an array's place in a loop of `TURNS`: its element was read.",
    "CLEARED": "The same: its element was dropped when it was read.",
    "WRITTEN": "The same: there is an element, or was one.",
    "TURNS": "The op type of loops whose turns are elementwise: a backend with a kernel for it "
    "makes many of them in a call.",
    "UPDATES": "The op type of updates of many variables at once: a backend with a kernel for it "
    "gets them.",
    "Exclusion": "Why a device does without a portable kernel: the reason; reasons by element "
    "type; or a function of the `NodeSig` that gives True or a reason.",
    "ALL": "All element types.",
    "NUMBERS": "`REALS` and `COMPLEX`.",
    "REALS": "`FLOATS` and `INTS`.",
    "FLOATS": "float16, bfloat16, float32 and float64.",
    "COMPLEX": "complex64 and complex128.",
    "INTS": "`SIGNED` and `UNSIGNED`.",
    "SIGNED": "int8 to int64.",
    "UNSIGNED": "uint8 to uint64.",
    "QUANTIZED": "qint8, quint8, qint16, quint16 and qint32.",
    "dtypes": "TensorFlow's element types by name (`tf.dtypes`), and the sets above.",
    "errors": "TensorFlow's exceptions (`tf.errors`). A kernel declines with `UnimplementedError`, "
    "has no memory with `ResourceExhaustedError`, and tells a lost device by `UnavailableError`.",
    "CAST": "The function of a line's step that converts to the step's type.",
    "INPUT": "The function of a line's step that is an input.",
    "NUMBER": "The function of a line's step that is a number.",
    "ERRORS": "Scalar functions that may fail, to their messages.",
    "RENDERED": "The element types that C code has words for.",
    "SERIES": "Coefficients of the special functions, which every device sums alike.",
    "OPS": "Functions of the namespace, a node and its inputs for the ops that take or give lists "
    "or tensor arrays; they raise NotImplementedError where these cannot be told in arrays.",
    "tracing": "What compilers of whole programs share: checks, lists and loops as arrays.",
    "kept": "What is kept on disk from one process to the next, where nobody else may write.",
    "cells": "The places in sparse tensors: checks, order, runs and unions, on the host.",
    "diagonals": "Where diagonals stand, for every alignment: a module.",
    "Dim": "A dimension: a number, or None.",
    "Place": "Where in which random stream: a 64-bit key and a 128-bit counter.",
    "PlaceWords": "A `Place` by its words of 32 bits, which may be arrays.",
    "RESERVED": "Blocks that TensorFlow sets aside for each output element of a random op.",
}
COMPANIONS = (
    "opdock.axes", "opdock.windows", "opdock.kernels.cells", "opdock.kernels.checks",
    "opdock.kernels.philox", "opdock.codegen", "opdock.io.host_ops", "opdock.devices.tracing",
    "opdock.kept", "opdock.testing.authoring",
)  # fmt: skip
COMMANDS_HEAD = """`opdock COMMAND --help` says the same; `opdock completion bash` prints what
bash needs to complete commands and options.

All commands end with 0 when they did what they were asked for, with 1 when they found what they
look for (damage, a difference, a name that is not covered), with 2 when an option, a name or a file
is wrong, and with 130 after Ctrl-C; `run` and `launch` end as the program does. Results go to
stdout, errors to stderr. Colours, and what shows that work goes on, are for terminals alone;
`NO_COLOR` switches colours off. What `--json` prints keeps its keys: new ones may come, none
changes its meaning. `run`, `record` and `launch` have no `--json`: what they print is the
program's. `opdock replay FILE --json` tells what a recording did.
"""
COMPATIBILITY_HEAD = """# Which works with which

This opdock-core has version {version} of the plugin API. A plugin that asks for the same major
version and for no later minor one works: later ones only add to it. `opdock doctor` says which
plugins were left out, with a [code](errors.md) for the reason.

| distribution | version | needs of opdock | plugin API | entry points | Python |
| --- | --- | --- | --- | --- | --- |"""
ERRORS_HEAD = """Errors that TensorFlow has too keep its classes and words
(`tf.errors`). Those that are opdock's own have a code behind the first line of their
message, which never changes its meaning.
"""
HEAD = "<!-- written by tools/make_reference.py from docstrings: `make reference` -->\n"


# ---------------------------------------------------------------- docstrings
def own_doc(found: Any) -> str:
    """The docstring of an object itself, not that of its type."""
    if isinstance(found, (str, int, tuple, frozenset, dict)) or not (
        inspect.isclass(found) or callable(found) or inspect.ismodule(found)
    ):
        return ""
    return inspect.getdoc(found) or ""


def rendered(doc: str) -> Iterator[str]:
    """A Google-style docstring as Markdown: prose, and a list for each section."""
    section = ""
    margin = 0  # of the section's entries; what stands further in goes on with one
    entry: list[str] = []

    def done() -> Iterator[str]:
        if entry:
            text = " ".join(entry)
            named = re.fullmatch(r"([\w, *]+?): (.*)", text) if section not in PROSE else None
            yield f"- `{named[1]}`: {named[2]}" if named else f"- {text}"
            entry.clear()

    code = False
    for line in doc.splitlines():
        head = re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields|Example):", line)
        if head:
            yield from done()
            section, margin = head[1], 0
            yield f"\n{section}:\n" if section != "Example" else "\nExample:"
        elif section in ("", "Example") or not line.startswith(" "):
            yield from done()
            is_code = line.startswith("    ")
            if is_code != code and line.strip():
                yield "" if not is_code else "\n```text"
                if not is_code:
                    yield "```\n"
                code = is_code
            section = section if line.startswith(" ") or not line or section == "Example" else ""
            yield line[4:] if code else line
        elif line.strip():
            inset = len(line) - len(line.lstrip())
            margin = margin or inset
            if inset <= margin and section not in PROSE:
                yield from done()
            entry.append(line.strip())
    yield from done()
    if code:
        yield "```"


PROSE = ("Returns", "Yields")


def members(kind: type) -> Iterator[str]:
    """A line for each public method and property that a class defines with a docstring."""
    for name, found in vars(kind).items():
        if name.startswith("_"):
            continue
        function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        doc = inspect.getdoc(function) if callable(function) else None
        if doc:
            first = " ".join(doc.split("\n\n")[0].split())
            call = "" if isinstance(found, property) else signature(function, bound=True)
            yield f"- `{name}{call}`: {first}"


def signature(found: Any, bound: bool = False) -> str:
    """The parameters' names; of a class those of its constructor."""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return ""
    names = []
    starred = False
    bound = bound and bool(parameters) and parameters[0].name == "self"
    for p in parameters[bound:]:
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            names.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        starred = starred or star == "*"
        names.append(star + p.name)
    return f"({', '.join(names)})"


def entry(name: str, found: Any) -> str:
    """The section of one name."""
    plain = inspect.ismodule(found) or name in VALUES
    protocol = inspect.isclass(found) and getattr(found, "_is_protocol", False)
    head = name if plain or protocol else name + signature(found)
    doc = VALUES.get(name) or own_doc(found)
    if not doc:
        raise SystemExit(f"{name} has no docstring; say what it is in VALUES of {__file__}")
    lines = [f"### `{head}`", "", *rendered(doc)]
    if inspect.isclass(found) and name not in VALUES:
        listed = list(members(found))
        lines += ["", *listed] if listed else []
    return tidy("\n".join(lines))


def tidy(text: str) -> str:
    """The text with one blank line at most, and a newline at its end."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


# ---------------------------------------------------------------- pages
def plugin_page() -> str:
    """The page of `opdock.plugin`."""
    module = import_module("opdock.plugin")
    parts = [
        HEAD,
        "# `opdock.plugin`\n",
        (
            "All that a backend or another plugin imports of opdock, but for the module by which "
            "the author of an op\nproves it, [`opdock.testing.authoring`](companions.md). "
            "[Plugin hooks](../plugin_hooks.md) says what is asked when.\n"
        ),
    ]
    for title, names in SECTIONS.items():
        parts += [f"## {title}\n", *(entry(n, getattr(module, n)) for n in names)]
    return "\n".join(parts)


def companions_page() -> str:
    """The page of the companions."""
    parts = [
        HEAD,
        "# Companion modules\n",
        (
            "What backends need for families of ops, by module. "
            "[`opdock.plugin`](plugin.md) hands out the first seven by their last names.\n"
        ),
    ]
    for name in COMPANIONS:
        module = import_module(name)
        parts += [f"## `{name}`\n", tidy("\n".join(rendered(inspect.getdoc(module) or "")))]
        parts += [entry(n, getattr(module, n)) for n in sorted(module.__all__)]
    return "\n".join(parts)


def compatibility_page() -> str:
    """The page of which distribution works with which, from their pyproject.toml files."""
    root = FOLDER.parent.parent
    rows = []
    for path in sorted(root.glob("*/*/pyproject.toml")) + [root / "core/pyproject.toml"]:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        wants = " ".join(project.get("dependencies", []))
        ours = re.findall(r"opdock-[a-z]+(?:\[[a-z,]*\])?[^\s]*", wants)
        sources = "".join(
            p.read_text(encoding="utf-8") for p in path.parent.glob("src/*/__init__.py")
        )
        api = re.search(r"\bapi=\((\d+), (\d+)\)", sources)
        told = ".".join(api.groups()) if api else "-"
        groups = ", ".join(sorted(project.get("entry-points", {}))) or "-"
        needs = ", ".join(f"`{name}`" for name in ours) or "-"
        cells = (
            f"`{project['name']}`", project["version"], needs, told, groups,
            project["requires-python"],
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    version = ".".join(map(str, import_module("opdock.plugin").API_VERSION))
    return "\n".join([HEAD, COMPATIBILITY_HEAD.format(version=version), *rows, ""])


def errors_page() -> str:
    """The page of the errors that are opdock's own, from their table."""
    from opdock.codes import CODES

    parts = [HEAD, "# Errors\n", ERRORS_HEAD]
    for code, known in CODES.items():
        parts += [f"## {code}\n", f"{known.title}.\n", f"{known.meaning}\n", f"{known.remedy}\n"]
    return "\n".join(parts)


def command_page() -> str:
    """The page of the command line, from what `--help` says."""
    import opdock.cli.main as cli

    parts = [
        HEAD,
        "# The command line\n",
        COMMANDS_HEAD,
    ]
    with click.Context(cli.main, info_name="opdock") as top:
        for name in cli.main.list_commands(top):
            command = cli.main.get_command(top, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=top) as context:
                parts.append(tidy("\n".join(command_lines(command, context))))
                inner = command.commands if isinstance(command, click.Group) else {}
                for word, one in inner.items():
                    with click.Context(one, info_name=word, parent=context) as own:
                        parts.append(tidy("\n".join(command_lines(one, own, "###"))))
    return "\n".join(parts)


def command_lines(
    command: click.Command, context: click.Context, head: str = "##"
) -> Iterator[str]:
    """The section of one command."""
    from opdock.cli._command import Command

    yield f"{head} `{context.command_path}`\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        # Click keeps the lines of such a paragraph as they are.
        kept = paragraph.startswith("\b\n")
        yield f"```\n{paragraph[2:]}\n```\n" if kept else f"{paragraph}\n"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{context.command_path} {pieces}\n```\n"
    options = (
        p
        for p in command.get_params(context)
        if isinstance(p, click.Option) and "--help" not in p.opts
    )
    rows = [row for p in options if (row := p.get_help_record(context))]
    if rows:
        yield "| option | |\n| --- | --- |"
        for option, text in rows:
            said = text.replace("|", "\\|")
            yield f"| `{option.replace('|', chr(92) + '|')}` | {said} |"
    if isinstance(command, Command):
        yield from common_lines(command)


def common_lines(command: Any) -> Iterator[str]:
    """What opdock's commands say at the end of their help."""
    yield f"\nExample:\n\n```\n{command.example}\n```\n"
    if command.keys:
        yield f"`--json` prints {command.printed}:\n"
        yield "| key | |\n| --- | --- |"
        yield from (f"| `{key}` | {said} |" for key, said in command.keys.items())
    yield f"\nExit status: {command.status}"


def pages() -> dict[Path, str]:
    """Path to text."""
    return {
        FOLDER / "plugin.md": plugin_page(),
        FOLDER / "companions.md": companions_page(),
        FOLDER / "command-line.md": command_page(),
        FOLDER / "errors.md": errors_page(),
        FOLDER / "compatibility.md": compatibility_page(),
    }


def main() -> None:
    """Writes the pages."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
