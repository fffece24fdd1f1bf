"""opdock's CPU backend: every op of TensorFlow 1 on NumPy arrays in host memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from opdock.plugin import BackendSpec, GraphPass, GraphView, hookimpl

FAMILIES = (
    "accumulators", "argmax", "arithmetic", "array", "audio", "barriers", "beam_search", "bias",
    "bitwise", "boosted_trees", "boosted_trees_quantiles", "boosted_trees_stats",
    "candidate_sampling", "cast", "clustering", "compare", "complex", "conv", "ctc",
    "decompositions", "depthwise", "edit_distance", "einsum", "encoding", "fake_quant", "fft",
    "fill", "gather", "hashing", "histogram", "image_boxes", "image_codec", "image_color",
    "image_crop", "image_regions", "inplace", "io", "joining", "linalg", "lookup", "loss", "lrn",
    "matrix", "matrix_functions", "morphology", "mutex", "ngrams", "nn", "norm", "padding",
    "parsing", "partition", "quantize", "quantized", "quantized_fused", "quantized_nn", "queues",
    "ragged", "ragged_padding", "random", "random_dist", "readers", "record_input", "reduce",
    "regex", "remapping", "scan", "scatter", "segment", "select", "set_operations", "sets", "solve",
    "sorting", "sparse_cross", "sparse_layout", "sparse_math", "sparse_reduce", "sparse_serial",
    "special", "state", "strings", "summary", "summary_writer", "sums", "tiling", "timestamp",
    "training", "tridiagonal", "unicode", "xent",
)  # fmt: skip

ONEDNN = ("bias", "conv", "fused", "linalg", "lrn", "narrowed", "norm", "pool", "quantized", "xent")


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend that is always there, and to which every other falls back."""
    yield BackendSpec(
        name="cpu",
        device_type="CPU",
        own_type="CPU",
        api=(1, 0),
        priority=0,
        probe="opdock_cpu.probe:probe",
        device="opdock_cpu.device:CpuDevice",
        kernels=(
            *(f"opdock_cpu.kernels.{family}:table" for family in FAMILIES),
            *(f"opdock_cpu.onednn.kernels.{family}:table" for family in ONEDNN),
            "opdock_cpu.jit.cluster:table",
            "opdock_cpu.jit.elementary:table",
            "opdock_cpu.jit.entropy:table",
            "opdock_cpu.jit.norm:table",
            "opdock_cpu.jit.reduce:table",
            "opdock_cpu.jit.training:table",
        ),
        fusions=(
            "opdock_cpu.onednn.fusions:patterns",
            "opdock_cpu.onednn.narrowed_fusions:patterns",
            "opdock_cpu.jit.entropy:patterns",
        ),
        notes="opdock_cpu.notes:notes",
    )


@hookimpl
def opdock_graph_passes() -> Iterator[GraphPass]:
    """Tells convolutions and the like which of their inputs can be laid out once."""

    def note(graph: GraphView) -> None:
        importlib.import_module("opdock_cpu.onednn.stays").note_kept_inputs(graph)

    yield GraphPass(name="cpu_kept_inputs", stage="after_place", run=note)
