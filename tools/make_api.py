"""Writes core/src/opdock/_api.py and __init__.pyi: which module each public TF name comes from.

Op families list their public names in `__all__`; the rest is listed here. Run `make api` after a
change; a test fails when the files are stale.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "core/src/opdock"

# Public names of modules that are not op families (families speak through __all__).
EXTRA: dict[str, dict[str, str]] = {
    "opdock.graph.nodes.graph": {
        n: n
        for n in (
            "Graph",
            "get_default_graph",
            "reset_default_graph",
        )
    },
    "opdock.graph.nodes.default_session": {"get_default_session": "get_default_session"},
    "opdock.graph.nodes.operation": {n: n for n in ("Operation", "Tensor")},
    "opdock.graph.nodes.scopes": {
        n: n
        for n in (
            "name_scope",
            "device",
            "colocate_with",
            "control_dependencies",
            "container",
            "op_scope",
            "init_scope",
            "executing_eagerly",
        )
    },
    "opdock.graph.nodes.collections": {
        n: n
        for n in (
            "GraphKeys",
            "add_to_collection",
            "add_to_collections",
            "get_collection",
            "get_collection_ref",
        )
    },
    "opdock.graph.nodes.seeds": {"set_random_seed": "set_random_seed", "get_seed": "get_seed"},
    "opdock.graph.nodes.constant": {"constant": "constant"},
    "opdock.graph.nodes.constant_value": {"get_static_value": "constant_value"},
    "opdock.graph.nodes.convert": {
        n: n
        for n in (
            "convert_to_tensor",
            "register_tensor_conversion_function",
        )
    },
    "opdock.graph.nodes.composite": {
        n: n
        for n in (
            "IndexedSlices",
            "SparseTensor",
            "SparseTensorValue",
            "IndexedSlicesValue",
            "convert_to_tensor_or_indexed_slices",
            "convert_to_tensor_or_sparse_tensor",
            "is_tensor",
        )
    },
    "opdock.graph.nodes.typespec": {n: n for n in ("TensorSpec", "TypeSpec")},
    "opdock.graph.nodes.compositespec": {n: n for n in ("IndexedSlicesSpec", "SparseTensorSpec")},
    "opdock.graph.nodes.devicespec": {"DeviceSpec": "DeviceSpec"},
    "opdock.graph.nodes.gradient_registry": {
        "RegisterGradient": "RegisterGradient",
        "NotDifferentiable": "not_differentiable",
        "NoGradient": "not_differentiable",
        "no_gradient": "not_differentiable",
    },
    "opdock.graph.serial.importer": {"import_graph_def": "import_graph_def"},
    "opdock.errors": {"OpError": "OpError"},
    "opdock.shapes": {
        "TensorShape": "TensorShape",
        "Dimension": "Dimension",
        "dimension_at_index": "dimension_at_index",
        "dimension_value": "dimension_value",
    },
    "opdock.dtypes": {
        n: n
        for n in (
            "DType",
            "as_dtype",
            "float16",
            "float32",
            "float64",
            "bfloat16",
            "half",
            "double",
            "complex64",
            "complex128",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "QUANTIZED_DTYPES",
            "bool",
            "string",
            "resource",
            "variant",
            "qint8",
            "quint8",
            "qint16",
            "quint16",
            "qint32",
        )
    },
    "opdock.runtime.session": {"Session": "Session", "InteractiveSession": "InteractiveSession"},
    "opdock.runtime.fetch": {},
    "opdock.autodiff.gradients": {
        n: n
        for n in (
            "gradients",
            "hessians",
            "AggregationMethod",
            "UnconnectedGradients",
        )
    },
    "opdock.autodiff.tape": {"GradientTape": "GradientTape"},
    "opdock.util.module": {"Module": "Module"},
    "opdock.eager.modes": {
        n: n
        for n in (
            "disable_eager_execution",
            "disable_v2_behavior",
            "enable_eager_execution",
            "enable_v2_behavior",
        )
    },
    "opdock.api.scripts": {"py_function": "py_function"},
    "opdock.api.logging": {"get_logger": "get_logger"},
    "opdock.autodiff.custom": {
        n: n for n in ("custom_gradient", "grad_pass_through", "recompute_grad")
    },
    "opdock.io.protos": {
        n: n
        for n in (
            "GraphDef",
            "NodeDef",
            "AttrValue",
            "ConfigProto",
            "GPUOptions",
            "GraphOptions",
            "OptimizerOptions",
            "RunOptions",
            "RunMetadata",
            "MetaGraphDef",
            "SummaryMetadata",
            "Event",
            "HistogramProto",
            "NameAttrList",
            "Summary",
            "SessionLog",
            "LogMessage",
            "TensorInfo",
        )
    },
    "opdock.io.tensor_proto": {n: n for n in ("make_ndarray", "make_tensor_proto")},
    "opdock.mapping.finder": {"install_as_tensorflow": "install_as_tensorflow"},
    "opdock.notebook.extension": {"load_ipython_extension": "load_ipython_extension"},
    "opdock.version": {
        "VERSION": "VERSION",
        "GIT_VERSION": "GIT_VERSION",
        "COMPILER_VERSION": "COMPILER_VERSION",
        "CXX11_ABI_FLAG": "CXX11_ABI_FLAG",
        "MONOLITHIC_BUILD": "MONOLITHIC_BUILD",
        "GRAPH_DEF_VERSION": "GRAPH_DEF_VERSION",
        "GRAPH_DEF_VERSION_MIN_CONSUMER": "GRAPH_DEF_VERSION_MIN_CONSUMER",
        "GRAPH_DEF_VERSION_MIN_PRODUCER": "GRAPH_DEF_VERSION_MIN_PRODUCER",
    },
}
# Modules with __all__ that speak for themselves besides opdock.ops.*.
FAMILIES = (
    "lookup/initialization.py",
    "graph/variables/flavour.py",
    "graph/variables/variable.py",
    "graph/variables/variable_scope.py",
    "graph/variables/template.py",
    "graph/variables/initializers.py",
    "graph/variables/variable_lists.py",
    "graph/variables/resource_variable.py",
    "graph/variables/partitioners.py",
)
# Parts of `tf.function` that programs have no names for.
INTERNAL = frozenset(
    ("concrete_function", "effects", "function_spec", "function_traces", "tracing"),
)
# Op families whose public home is `tf.nn` alone.
NN_ONLY = frozenset(
    (
        "bias",
        "conv",
        "conv3d",
        "ctc",
        "depthwise",
        "dilated",
        "dropout",
        "average_loss",
        "fractional_pool",
        "fused_conv",
        "ctc_labels",
        "loss",
        "lrn",
        "moments",
        "morphology",
        "nn",
        "norm",
        "pool",
        "pool3d",
        "pooling",
        "quantized_nn",
        "xent",
    )
)
SUBMODULES = (
    "nn",
    "math",
    "linalg",
    "bitwise",
    "audio",
    "random",
    "train",
    "layers",
    "distribute",
    "losses",
    "saved_model",
    "summary",
    "errors",
    "initializers",
    "signal",
    "spectral",
    "strings",
    "image",
    "io",
    "test",
    "gfile",
    "logging",
    "flags",
    "app",
    "graph_util",
    "timeline",
    "metrics",
    "data",
    "sets",
    "config",
    "xla",
    "saved_model",
    "contrib",
    "examples",
    "python",
    "raw_ops",
    "dtypes",
    "testing",
    "keras",
    "sysconfig",
    "python_io",
    "resource_loader",
    "compat",
    "quantization",
    "sparse",
    "ragged",
    "regularizers",
    "constraints",
    "version",
    "manip",
    "debugging",
    "autograph",
    "distributions",
    "estimator",
    "feature_column",
    "profiler",
    "user_ops",
    "lookup",
    "queue",
    "session",
    "client",
    "nest",
)


def names_in_all(path: Path) -> list[str]:
    """The `__all__` of a module, read without importing it."""
    for node in ast.parse(path.read_text()).body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if (
            any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)
            and node.value is not None
        ):
            return list(ast.literal_eval(node.value))
    return []


def collect() -> dict[str, tuple[str, str]]:
    """Public name to (module, name there)."""
    found: dict[str, tuple[str, str]] = {}
    for module, names in EXTRA.items():
        for public, inner in names.items():
            found[public] = (module, inner)
    paths = [
        *sorted((ROOT / "ops").glob("*.py")),
        *sorted((ROOT / "ops/composed").glob("*.py")),
        *(ROOT / f for f in FAMILIES),
    ]
    for path in paths:
        if path.name in ("__init__.py", "registry.py"):
            continue
        if path.stem in NN_ONLY | INTERNAL:
            continue
        module = "opdock." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in names_in_all(path):
            found.setdefault(name, (module, name))
    return found


def submodules() -> dict[str, str]:
    """The public submodules that exist, and where each one is."""
    found = {}
    for name in sorted(SUBMODULES):
        if (ROOT / f"api/{name}.py").exists():
            found[name] = f"opdock.api.{name}"
        elif (ROOT / f"{name}.py").exists() or (ROOT / name / "__init__.py").exists():
            found[name] = f"opdock.{name}"
    return found


def internal() -> list[str]:
    """The modules beside the public ones that opdock itself imports from `opdock`."""
    return sorted(
        path.stem
        for path in ROOT.glob("*.py")
        if not path.stem.startswith("_") and path.stem not in SUBMODULES
    )


def render() -> dict[Path, str]:
    """The files to write."""
    found = collect()
    groups: dict[str, dict[str, str]] = {}
    for public, (module, inner) in sorted(found.items()):
        groups.setdefault(module, {})[public] = inner
    lines = [
        '"""Public names and where they live. Generated by tools/make_api.py; do not edit."""',
        "# ruff: noqa: E501",
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "NAMES: Final[dict[str, tuple[str, str]]] = {",
    ]
    for public, (module, inner) in sorted(found.items()):
        lines.append(f'    "{public}": ("{module}", "{inner}"),')
    lines += ["}", "SUBMODULES: Final = {"]
    lines += [f'    "{name}": "{module}",' for name, module in submodules().items()]
    lines += ["}", f"INTERNAL: Final = frozenset({internal()!r})".replace("'", '"'), ""]
    stub = [
        '"""The public namespace for type checkers; tools/make_api.py writes it."""',
        "# ruff: noqa: E501, I001",
        "",
    ]
    for module, names in sorted(groups.items()):
        for public, inner in names.items():
            stub.append(f"from {module} import {inner} as {public}")
    for name, module in submodules().items():
        stub.append(f"from {module.rpartition('.')[0]} import {name} as {name}")
    stub += ["", "__version__: str", ""]
    return {ROOT / "_api.py": "\n".join(lines), ROOT / "__init__.pyi": "\n".join(stub)}


def main() -> int:
    """Writes the files; with --check only says whether they are current."""
    stale = [p for p, text in render().items() if not p.exists() or p.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT.parent)} is stale: run `make api`")
        return 1 if stale else 0
    for path, text in render().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
