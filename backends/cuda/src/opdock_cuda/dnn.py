"""cuDNN through its Python frontend: graphs of operations, planned once per shape.

It is optional. Where it is not installed, or has no engine for a graph, the shared kernels serve.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import cupy
import numpy as np

from opdock.plugin import DType, deterministic, dtypes

__all__ = ["TYPES", "Graph", "Library", "missing", "strides_of"]

_NAMES: Final = {
    dtypes.float32: "FLOAT", dtypes.float16: "HALF", dtypes.bfloat16: "BFLOAT16",
}  # fmt: skip
TYPES: Final = frozenset(_NAMES)
"""The element types of the graphs here."""


@functools.cache
def _frontend() -> Any:
    """The module, or the reason why it cannot be used."""
    try:
        module = importlib.import_module("cudnn")
        module.backend_version()
    except ImportError:
        return 'cuDNN\'s frontend is not installed (pip install "opdock-cuda[cudnn]")'
    except Exception as e:  # it finds its library when it is first called
        return f"cuDNN does not start: {e}"
    return module


def missing() -> str:
    """Why cuDNN cannot be used; empty where it can."""
    found = _frontend()
    return found if isinstance(found, str) else ""


def strides_of(dims: Sequence[int], order: Sequence[int]) -> list[int]:
    """The strides of logical dimensions that lie in memory in `order`, the outermost first."""
    out, step = [0] * len(dims), 1
    for axis in reversed(order):
        out[axis] = step
        step *= dims[axis]
    return out


class Graph:
    """One planned graph.

    Args:
        library: cuDNN on a device.
        dtype: the element type of its tensors; sums are float32.
        build: fills a frontend graph; gives its tensors by name, inputs and outputs.

    Raises:
        Exception: cuDNN has no engine for it.
    """

    def __init__(
        self, library: Library, dtype: DType,
        build: Callable[[Any, Any], Mapping[str, Any]],
    ) -> None:  # fmt: skip
        cudnn, self._library = library.cudnn, library
        single = cudnn.data_type.FLOAT
        self._graph = graph = cudnn.pygraph(
            io_data_type=getattr(cudnn.data_type, _NAMES[dtype]), intermediate_data_type=single,
            compute_data_type=single, handle=library.handle(),
        )  # fmt: skip
        self._tensors = dict(build(cudnn, graph))
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        if dtype is dtypes.float32 and not library.device.tf32:
            # Tensor cores would round the factors to 10 bits.
            graph.deselect_numeric_notes([cudnn.numerical_note.TENSOR_CORE])
        if deterministic():
            graph.deselect_numeric_notes([cudnn.numerical_note.NONDETERMINISTIC])
        graph.check_support()
        graph.build_plans()
        self._size = int(graph.get_workspace_size())

    def run(self, **arrays: Any) -> None:
        """Queues the graph on arrays by the names of its tensors; host scalars stay alive."""
        scratch = self._library.device.allocate((max(self._size, 1),), np.dtype(np.uint8))
        pack = {self._tensors[n]: _address(a) for n, a in arrays.items()}
        with self._library.lock, self._library.device.clock.around("cudnn"):
            self._graph.execute(pack, scratch.data.ptr, handle=self._library.handle())


def _address(array: Any) -> int:
    if isinstance(array, np.ndarray) and type(array) is np.ndarray:
        return int(array.ctypes.data)
    return int(array.data.ptr)


class Library:
    """cuDNN on one device: a handle on the current stream, and the plans by shape."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.cudnn = _frontend()
        self.lock = threading.RLock()
        self._handle: Any = None
        self._graphs: dict[Any, Graph | None] = {}

    def handle(self) -> Any:
        """The handle, on the stream that is current."""
        if self._handle is None:
            self._handle = self.cudnn.create_handle()
        self.cudnn.set_stream(handle=self._handle, stream=cupy.cuda.get_current_stream().ptr)
        return self._handle

    def graph(
        self, key: Any, dtype: DType, build: Callable[[Any, Any], Mapping[str, Any]]
    ) -> Graph | None:
        """The graph of a key, planned when it is first asked for; None where none can be had."""
        full = (key, dtype, self.device.tf32)
        with self.lock:
            if full not in self._graphs:
                try:
                    self._graphs[full] = Graph(self, dtype, build)
                except Exception as e:
                    if not _declined(self.cudnn, e):
                        raise
                    self._graphs[full] = None
            return self._graphs[full]


def _declined(cudnn: Any, error: Exception) -> bool:
    kinds = tuple(
        kind
        for kind in (getattr(cudnn, "cudnnGraphNotSupportedError", None), RuntimeError)
        if isinstance(kind, type)
    )
    return isinstance(error, kinds)
