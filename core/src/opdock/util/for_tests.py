"""TF's `framework.test_util`: decorators and helpers that test cases outside of TensorFlow use.

opdock has graphs alone and one implementation of everything, so most of its decorators, which
choose between TensorFlow's modes, leave a test as it is; those for eager tests skip it.
"""

from __future__ import annotations

import contextlib
import functools
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from opdock.api import test
from opdock.api.test import TestCase, assert_equal_graph_def, gpu_device_name, is_gpu_available
from opdock.graph.nodes.scopes import device as placed
from opdock.graph.serial.proto_functions import get_collection_proto_type

__all__ = [
    "TensorFlowTestCase", "assert_equal_graph_def", "assert_meta_graph_protos_equal",
    "build_as_function_and_v1_graph",
    "deprecated_graph_mode_only", "device", "disable_all_xla", "disable_control_flow_v2",
    "disable_xla", "enable_control_flow_v2", "for_all_test_methods", "force_cpu", "force_gpu",
    "gpu_device_name", "is_gpu_available", "no_xla_auto_jit", "run_all_in_graph_and_eager_modes",
    "run_all_without_tensor_float_32", "run_deprecated_v1", "run_in_async_and_sync_mode",
    "run_in_graph_and_eager_modes", "run_v1_only", "run_v2_only", "skip_if",
    "use_deterministic_cudnn", "use_gpu", "with_control_flow_v2",
    "xla_allow_fallback",
]  # fmt: skip

TensorFlowTestCase = TestCase


def _as_it_is(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that leaves a test or a class alone."""
    if callable(func):
        return func
    return _as_it_is


build_as_function_and_v1_graph = deprecated_graph_mode_only = _as_it_is
disable_control_flow_v2 = enable_control_flow_v2 = with_control_flow_v2 = _as_it_is
disable_xla = disable_all_xla = no_xla_auto_jit = xla_allow_fallback = _as_it_is
run_all_without_tensor_float_32 = run_in_async_and_sync_mode = use_deterministic_cudnn = _as_it_is
run_deprecated_v1 = run_v1_only = _as_it_is


def run_v2_only(func: Any = None, reason: str | None = None) -> Any:
    """Skips the test: it is about TF 2."""
    why = reason or "a test of TF 2's behaviour"
    return unittest.skip(why)(func) if callable(func) else unittest.skip(why)


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
        for name in [n for n in dir(cls) if n.startswith("test") and n != "test_session"]:
            setattr(cls, name, decorator(*args, **kwargs)(getattr(cls, name)))
        return cls

    return decorate


def run_in_graph_and_eager_modes(func: Any = None, **kwargs: Any) -> Any:
    """Runs a test in a session, as TF does before it runs it eagerly."""
    if func is None:
        return functools.partial(run_in_graph_and_eager_modes, **kwargs)
    if isinstance(func, type):
        raise ValueError("`run_in_graph_and_eager_modes` only supports test methods.")

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.test_session():
            return func(self, *args, **kwargs)

    return wrapper


def run_all_in_graph_and_eager_modes(cls: Any) -> Any:
    """`run_in_graph_and_eager_modes` for each test of a class."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


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
    assert_equal_graph_def(a.graph_def, b.graph_def)
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
