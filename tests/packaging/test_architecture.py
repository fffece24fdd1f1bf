"""The direction of dependence, one table: what stands below may not import what stands above."""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core" / "src"

BASE = {
    "errors",
    "dtypes",
    "shapes",
    "version",
    "axes",
    "windows",
    "docstrings",
    "nearest",
    "codes",
    "values",
    "fields",
    "failures",
    "late",
    "kept",
}
# First name under `opdock.` -> the names under `opdock.` that it may import.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "dtypes": BASE,
    "shapes": BASE,
    "axes": {"errors"},
    "windows": {"errors", "late"},
    "docstrings": set(),
    "nearest": set(),
    "codes": {"late"},
    "values": {"dtypes"},
    "fields": set(),
    "failures": set(),
    "late": set(),
    "kept": set(),
    "io": BASE,  # wire formats: protobufs, records, tables
    "graph": BASE | {"io"},
    "kernels": BASE | {"io", "graph"},
    "devices": BASE | {"graph", "kernels"},
    "plugins": BASE | {"graph", "kernels", "devices"},
    "ops": BASE | {"io", "graph"},
    "autodiff": BASE | {"graph", "ops"},
    "compiler": BASE | {"io", "graph", "devices", "kernels", "plugins"},
    "view": BASE | {"io"},  # what is told of programs, and the page that tells it
    "runtime": BASE | {"io", "graph", "devices", "kernels", "plugins", "compiler", "view"},
    "eager": BASE | {"io", "graph", "ops", "autodiff", "kernels", "runtime"},
}
# Built on the public graph and op API; they may import each other, but nothing below imports them.
LIBRARY = {
    "train", "data", "distribute", "layers", "linear", "lookup", "losses", "metrics", "saved_model",
    "summary", "tools", "transforms", "api", "distributions", "feature_column", "onnx",
    "profiler",
}  # fmt: skip
for _name in LIBRARY:
    MAY_IMPORT[_name] = BASE | LIBRARY | {"io", "graph", "ops", "autodiff", "runtime", "eager"}

# (file, imported name): reason. An import inside a function, taken when a user's call needs it.
LATE: dict[tuple[str, str], str] = {
    ("opdock/shapes.py", "io"): "TensorShape.as_proto, TF's own method, makes a protobuf",
    ("opdock/ops/control.py", "autodiff"): "the gradients differentiate the bodies",
    ("opdock/ops/calls.py", "autodiff"): "the gradient of a function is one",
    ("opdock/graph/variables/variable.py", "ops"): "a variable is sliced as a tensor is",
    ("opdock/ops/einsum.py", "autodiff"): "the gradient is that of the contraction it stands for",
}


def sources(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def imports(path: Path) -> tuple[tuple[str, ast.AST], ...]:
    """Every module that a file imports when it runs, wherever the statement stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found: list[tuple[str, ast.AST]] = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(f"{node.module}.{alias.name}", node) for alias in node.names]
    return tuple(found)


def below(name: str) -> str:
    return name.split(".")[1] if name.startswith("opdock.") else ""


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_a_layer_imports_only_what_stands_below_it(layer: str) -> None:
    wrong = []
    for path in sources("core/src/opdock"):
        if below(module_name(path)) != layer:
            continue
        for name, node in imports(path):
            target = below(name)
            if target in MAY_IMPORT and target not in MAY_IMPORT[layer] | {layer}:
                place = path.relative_to(CORE).as_posix()
                if (place, target) not in LATE or node.col_offset == 0:
                    wrong.append(f"{place}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


# (module, module under `opdock.`) -> why it must import, inside a function, what imports it.
BACKWARD: dict[tuple[str, str], str] = {
    ("graph.nodes.registry", "graph.nodes.builder"): "calling an OpSpec builds a node",
    ("graph.nodes.operation", "graph.serial.node_def"): "Operation.node_def, TF's own attribute",
    ("graph.nodes.composite", "graph.nodes.compositespec"): "a value says its own spec",
    ("graph.nodes.graph", "graph.serial.graphdef"): "Graph.as_graph_def and create_op, TF's own",
    ("graph.serial.function_def", "graph.serial.importer"): "a body is imported as a graph is",
    ("graph.variables.flavour", "graph.variables.ref_variable"): "tf.Variable makes one",
    (
        "graph.variables.flavour",
        "graph.variables.resource_variable",
    ): "tf.Variable makes one",
    ("graph.variables.flavour", "graph.variables.variable_scope"): "the scope says which subclass",
    ("data.spec", "data.dataset"): "the spec makes the dataset that it describes",
    ("ops.control", "autodiff.control"): "the gradient differentiates the branches",
    ("ops.control", "autodiff.backward_loop"): "the gradient differentiates the body",
    ("runtime.session", "runtime.inspect.bisect"): "Session.bisect saves cases; they run sessions",
    ("runtime.session", "runtime.inspect.shadow"): "Session.shadow compares as cases are compared",
    ("runtime.session", "runtime.inspect.swapping"): "Session.use_kernel finds devices as these do",
}


# (module, module under `opdock.`) -> why it is imported inside a function though it is loaded.
KEPT_LATE: dict[tuple[str, str], str] = {
    ("api.test", "io.protos"): "a message's class is loaded when it is asked for",
    ("api.test", "graph.nodes.default_session"): "the module's names are TF's",
}


def import_graph(late: bool = True) -> dict[str, set[str]]:
    """Module -> the modules that it imports; packages are folders here, no modules.

    Args:
        late: whether imports inside functions count.
    """
    paths = {
        module_name(p).removeprefix("opdock."): p
        for p in sources("core/src/opdock")
        if p.name != "__init__.py"
    }
    graph: dict[str, set[str]] = {name: set() for name in paths}
    for module, path in paths.items():
        for name, node in imports(path):
            if not late and node.col_offset:
                continue
            found = name.removeprefix("opdock.")
            graph[module].add(found if found in paths else found.rpartition(".")[0])
        graph[module] &= paths.keys() - {module}
    return graph


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """The modules that `start` imports, those that they import, and so on."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def test_no_circle_of_imports_even_inside_functions() -> None:
    graph = import_graph()
    stale = [f"{a} -> {b}" for a, b in BACKWARD if b not in graph[a] or a not in reached(graph, b)]
    assert not stale, f"allowed to close a circle, but do not: {stale}"
    for module, target in BACKWARD:
        graph[module].discard(target)
    below_of = {module: reached(graph, module) for module in graph}
    wrong = [
        f"{module} -> {target}"
        for module, targets in graph.items()
        for target in sorted(targets)
        if module in below_of[target]
    ]
    assert not wrong, "these imports close circles:\n" + "\n".join(wrong)


def test_what_is_loaded_anyway_is_imported_at_the_top() -> None:
    every, early = import_graph(), import_graph(late=False)
    wrong = []
    for module, targets in every.items():
        late = targets - early[module]
        wrong += [
            f"{module} -> {target}"
            for target in sorted(late & reached(early, module) if late else late)
            if module not in reached(early, target) and (module, target) not in KEPT_LATE
        ]
    assert not wrong, "imports inside functions that save nothing:\n" + "\n".join(wrong)


def test_only_runtime_and_cli_reach_the_plugin_manager() -> None:
    allowed = {"runtime", "cli", "plugins", "plugin", "testing"}
    wrong = [
        f"{path}:{node.lineno}"
        for path in sources("core/src/opdock")
        for name, node in imports(path)
        if name.startswith("opdock.plugins.manager") and below(module_name(path)) not in allowed
    ]
    assert not wrong, "\n".join(wrong)


# The kernels that OpenCL and CUDA share are a distribution of their own, which both build on.
SHARED_KERNELS = {"opdock_opencl": "opdock_ckernels", "opdock_cuda": "opdock_ckernels"}


# The public modules for authors, each on a page of its own under docs/reference.
PUBLIC = ("opdock.plugin", "opdock.codegen", "opdock.testing.authoring")
# Runs steps, as programs do.
PROGRAM = "plugins/placer/src/opdock_placer/measuring.py"


def test_a_backend_imports_only_the_public_modules() -> None:
    wrong = []
    for path in sources("backends", "plugins"):
        if "src" not in path.parts and "tests" in path.parts:
            continue
        for name, node in imports(path):
            packages = {p.name for p in path.parents}
            packages |= {SHARED_KERNELS[p] for p in packages & SHARED_KERNELS.keys()}
            own = name.split(".")[0] in packages
            own |= name == "opdock" and path.as_posix().endswith(PROGRAM)
            if name.split(".")[0].startswith("opdock") and not own:
                if not any(name == p or name.startswith(f"{p}.") for p in PUBLIC):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_oracle_is_no_backend() -> None:
    own = ("numpy", "opdock.testing.reference")
    wrong = []
    for path in sources("core/src/opdock/testing/reference"):
        for name, node in imports(path):
            standard = name.split(".")[0] in sys.stdlib_module_names
            if not standard and not name.startswith(own):
                wrong.append(f"{path.name}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


BACKEND = re.compile(
    r"(?i)opdock_(cpu|cuda|opencl|echo|null)|cupy|pyopencl|\bcuda\b|opencl|numba|\btorch\b|\bjax\b"
)
# File: reason.
HELP_TEXTS: dict[str, str] = {
    "opdock/plugins/hints.py": "tells which distribution to install for hardware that is visible",
}
# (file, name): a public name of TF's that asks for a vendor.
TF_NAMES: dict[tuple[str, str], str] = {
    ("opdock/api/test.py", "CUDA"): "is_built_with_cuda, and is_gpu_available's cuda_only",
}


def test_core_names_no_backend_in_code() -> None:
    """Docstrings and comments may explain with an example; what code acts on may not."""
    wrong = []
    for path in sources("core/src/opdock"):
        text = path.read_text(encoding="utf-8")
        if not BACKEND.search(text):
            continue
        place = path.relative_to(CORE).as_posix()
        tree = ast.parse(text)
        prose = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            said = ""
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in prose
            ):
                said = node.value
            elif isinstance(node, ast.Name):
                said = node.id
            elif isinstance(node, ast.Attribute):
                said = node.attr
            elif isinstance(node, ast.Import | ast.ImportFrom):
                said = ast.unparse(node)
            if (hit := BACKEND.search(said)) and not (
                place in HELP_TEXTS or (place, hit.group()) in TF_NAMES
            ):
                wrong.append(f"{place}:{node.lineno} says {hit.group()!r}")
    assert not wrong, "\n".join(wrong)


# A file may be longer than 500 lines for a reason that stands here.
LONG: dict[str, str] = {
    "core/src/opdock/_api.py": "a table that tools/make_api.py writes",
}


def test_a_file_has_at_most_500_lines() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources(
            "core", "backends", "plugins", "tests", "benchmarks", "examples", "tools"
        )
    }
    wrong = [f"{name}: {n}" for name, n in lengths.items() if n > 500 and name not in LONG]
    assert not wrong, "\n".join(wrong)
    stale = [name for name in LONG if lengths.get(name, 0) <= 500]
    assert not stale, f"allowed to be long, but not: {stale}"
