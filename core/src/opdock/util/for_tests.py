"""TF's `framework.test_util`: decorators and helpers that test cases outside of TensorFlow use.

opdock has graphs alone and one implementation of everything, so most of its decorators, which
choose between TensorFlow's modes, leave a test as it is; those for eager tests skip it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opdock.api import test
from opdock.api.test import TestCase, assert_equal_graph_def, gpu_device_name, is_gpu_available
from opdock.eager.modes import eager_mode, graph_mode
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import device as placed
from opdock.graph.serial.importer import import_graph_def
from opdock.graph.serial.proto_functions import get_collection_proto_type
from opdock.io.protos import GraphDef

__all__ = [
    "GpuSupportsHalfMatMulAndConv", "IsBuiltWithROCm", "IsGoogleCudaEnabled", "IsMklEnabled",
    "NCHWToNHWC", "NHWCToNCHW", "TensorFlowTestCase", "also_run_as_tf_function",
    "assert_equal_graph_def", "assert_meta_graph_protos_equal", "assert_no_garbage_created",
    "assert_no_new_pyobjects_executing_eagerly", "assert_no_new_tensors", "assert_ops_in_graph",
    "build_as_function_and_v1_graph", "deprecated_graph_mode_only", "device", "disable_all_xla",
    "disable_control_flow_v2", "disable_cudnn_autotune", "disable_xla", "enable_c_shapes",
    "enable_control_flow_v2",
    "enable_output_all_intermediates", "enable_tf_xla_constant_folding", "fft_kernel_label_map",
    "for_all_test_methods", "force_cpu", "force_gpu", "generate_combinations_with_testcase_name",
    "get_node_def_from_graph", "gpu_device_name", "is_gpu_available", "is_xla_enabled",
    "no_xla_auto_jit", "py_func_if_in_function", "run_all_in_graph_and_eager_modes",
    "run_all_without_tensor_float_32", "run_cuda_only", "run_deprecated_v1", "run_gpu_only",
    "run_in_async_and_sync_mode", "run_in_graph_and_eager_modes", "run_v1_only", "run_v2_only",
    "set_producer_version", "skip_if", "use_deterministic_cudnn", "use_gpu", "with_c_shapes",
    "with_control_flow_v2", "xla_allow_fallback",
]  # fmt: skip

TensorFlowTestCase = TestCase


def _as_it_is(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that leaves a test or a class alone."""
    if callable(func):
        return func
    return _as_it_is


build_as_function_and_v1_graph = deprecated_graph_mode_only = _as_it_is
disable_control_flow_v2 = enable_control_flow_v2 = with_control_flow_v2 = _as_it_is
disable_cudnn_autotune = disable_xla = disable_all_xla = no_xla_auto_jit = xla_allow_fallback = (
    _as_it_is
)
run_all_without_tensor_float_32 = run_in_async_and_sync_mode = use_deterministic_cudnn = _as_it_is
run_deprecated_v1 = run_v1_only = _as_it_is
also_run_as_tf_function = py_func_if_in_function = enable_output_all_intermediates = _as_it_is
enable_c_shapes = with_c_shapes = enable_tf_xla_constant_folding = _as_it_is
# What they look for is garbage of TensorFlow's own C API and of eager execution.
assert_no_garbage_created = assert_no_new_tensors = _as_it_is
assert_no_new_pyobjects_executing_eagerly = _as_it_is


def run_v2_only(func: Any = None, reason: str | None = None) -> Any:
    """Skips the test: it is about TF 2."""
    why = reason or "a test of TF 2's behaviour"
    return unittest.skip(why)(func) if callable(func) else unittest.skip(why)


def run_gpu_only(func: Any = None) -> Any:
    """A decorator: the test is left out where no session finds a GPU."""
    if func is None:
        return run_gpu_only
    return skip_if(lambda: not is_gpu_available())(func)


def run_cuda_only(func: Any = None) -> Any:
    """A decorator: the test is left out where no CUDA backend serves a GPU."""
    if func is None:
        return run_cuda_only
    return skip_if(lambda: not is_gpu_available(cuda_only=True))(func)


def is_xla_enabled() -> bool:
    """False: what compiles whole programs is a matter of backends."""
    return False


def IsGoogleCudaEnabled() -> bool:
    """Whether an installed backend serves CUDA devices."""
    return test.is_built_with_cuda()


def IsBuiltWithROCm() -> bool:
    """False: no backend serves ROCm."""
    return test.is_built_with_rocm()


def IsMklEnabled() -> bool:
    """False: it would ask for the behaviour of another build of TensorFlow."""
    return False


def GpuSupportsHalfMatMulAndConv() -> bool:
    """Whether a CUDA backend is there: all GPUs that it serves do."""
    return test.is_built_with_cuda()


def _ordered(given: Any, order: Mapping[int, Sequence[int]]) -> Any:
    if isinstance(given, Tensor):
        shape = given.raw_shape
        if shape is None:
            raise ValueError("the rank has to be known")
        return get("Transpose")(given, list(order[len(shape)]))
    return [given[i] for i in order[len(given)]]


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor of 4 or 5 dimensions, or a shape, with the channels behind the batch."""
    return _ordered(input_tensor, {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor of 4 or 5 dimensions, or a shape, with the channels at the end."""
    return _ordered(input_tensor, {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)})


def generate_combinations_with_testcase_name(**kwargs: Any) -> list[dict[str, Any]]:
    """All combinations of values, each with a `testcase_name`, for parameterized tests.

    Args:
        **kwargs: lists of values, or single ones.
    """
    names = sorted(kwargs)
    values = [v if isinstance(v, list) else [v] for v in (kwargs[n] for n in names)]
    out = []
    for chosen in itertools.product(*values):
        made = dict(zip(names, chosen, strict=True))
        parts = (f"_{_plain(n)}_{_plain(v)}" for n, v in made.items())
        out.append({**made, "testcase_name": f"_test{''.join(parts)}"})
    return out


def _plain(value: Any) -> str:
    return "".join(filter(str.isalnum, str(value)))


def fft_kernel_label_map() -> contextlib.AbstractContextManager[None]:
    """Where TF's tests ask for its own Fourier transforms; there is one kind here."""
    return contextlib.nullcontext()


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The NodeDef of a name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def set_producer_version(graph: Graph, producer_version: int) -> None:
    """Has a graph say that this version made it."""
    graph_def = GraphDef()
    graph_def.versions.producer = producer_version
    with graph.as_default():
        import_graph_def(graph_def)


def assert_ops_in_graph(expected_ops: Mapping[str, str], graph: Graph) -> dict[str, Any]:
    """The nodes of these names and types.

    Args:
        expected_ops: op types by node name.
        graph: the graph.

    Raises:
        ValueError: one is missing or has another type.
    """
    found = {n.name: n for n in graph.as_graph_def().node if n.name in expected_ops}
    for name, node in found.items():
        if node.op != expected_ops[name]:
            raise ValueError(
                f"Expected op for node {name} is different. {expected_ops[name]} vs {node.op}"
            )
    if set(found) != set(expected_ops):
        raise ValueError(
            f"Not all expected ops are present. Expected {expected_ops.keys()}, found "
            f"{found.keys()}"
        )
    return found


def skip_if(condition: Any) -> Callable[[Any], Any]:
    """A decorator: the test is left out where the condition, a value or a function, holds."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if condition() if callable(condition) else condition:
                self.skipTest("the test's own condition")
            return function(self, *args, **kwargs)

        return wrapper

    return decorate


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator of classes that decorates each of their tests."""

    def decorate(cls: Any) -> Any:
        for name in _test_methods(cls):
            setattr(cls, name, decorator(*args, **kwargs)(getattr(cls, name)))
        return cls

    return decorate


def _test_methods(cls: Any) -> list[str]:
    names = [n for n in dir(cls) if n.startswith("test") and n != "test_session"]
    return [n for n in names if callable(getattr(cls, n))]


def run_in_graph_and_eager_modes(
    func: Any = None, config: Any = None, use_gpu: bool = True, reset_test: bool = True,
    **others: Any,
) -> Any:  # fmt: skip
    """Runs a test in a session, and again with operations that run as they are made.

    Args:
        func: the test.
        config: the session's settings.
        use_gpu: leave placement to the session; otherwise ops go to the CPU.
        reset_test: whether `tearDown` and `setUp` are called in between.
        **others: accepted for TF's signature.
    """
    if func is None:
        return functools.partial(
            run_in_graph_and_eager_modes, config=config, use_gpu=use_gpu, reset_test=reset_test,
            **others,
        )  # fmt: skip
    if isinstance(func, type):
        raise ValueError("`run_in_graph_and_eager_modes` only supports test methods.")

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        with (
            contextlib.suppress(unittest.SkipTest), graph_mode(),
            self.test_session(config=config, use_gpu=use_gpu),
        ):  # fmt: skip
            func(self, *args, **kwargs)
        if reset_test:
            self.tearDown()
            self._tempdir = None
        with eager_mode(alone=True):
            if reset_test:
                self.setUp()
            with contextlib.nullcontext() if use_gpu else placed("/device:CPU:0"):
                func(self, *args, **kwargs)

    return wrapper


def run_all_in_graph_and_eager_modes(cls: Any) -> Any:
    """`run_in_graph_and_eager_modes` for each test of a class that has no session of its own.

    By TF's convention those that have one are named `testSkipEager...`, or `test_skip_eager...`.
    """
    for name in _test_methods(cls):
        if not name.startswith(("testSkipEager", "test_skip_eager")):
            setattr(cls, name, run_in_graph_and_eager_modes(getattr(cls, name)))
    return cls


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Checks that two MetaGraphDefs say the same, in whichever order.

    Raises:
        AssertionError: they differ.
    """
    assert set(a.collection_def) == set(b.collection_def)
    for key in a.collection_def:
        kind = get_collection_proto_type(key)
        first, second = a.collection_def[key], b.collection_def[key]
        if kind is None:
            assert first == second
            continue
        one, two = first.bytes_list.value, second.bytes_list.value
        assert [kind.FromString(v) for v in one] == [kind.FromString(v) for v in two]
    assert_equal_graph_def(a.graph_def, b.graph_def, checkpoint_v2=True)
    tester.assertProtoEquals(a.graph_def.versions, b.graph_def.versions)
    for message in (a, b):
        message.ClearField("collection_def")
        message.ClearField("graph_def")
    tester.assertProtoEquals(a, b)


@contextlib.contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Places on the GPU if there is one and it is wanted, else on the CPU."""
    with placed(test.gpu_device_name() or "/device:CPU:0" if use_gpu else "/device:CPU:0"):
        yield


def use_gpu() -> contextlib.AbstractContextManager[None]:
    """Places on a GPU if there is one."""
    return device(use_gpu=True)


force_gpu = use_gpu


def force_cpu() -> contextlib.AbstractContextManager[None]:
    """Places on the CPU."""
    return device(use_gpu=False)
