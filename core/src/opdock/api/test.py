"""`tf.test`: a unittest.TestCase for graphs, and the gradient checker."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from opdock import errors
from opdock.api.benchmark import Benchmark, benchmark_config, benchmarks_main
from opdock.autodiff.checker import compute_gradient, compute_gradient_error
from opdock.graph.nodes.composite import SparseTensorValue
from opdock.graph.nodes.devicespec import canonical_name
from opdock.graph.nodes.graph import Graph, reset_default_graph
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.seeds import set_random_seed
from opdock.runtime.session import Session
from opdock.util import nest
from opdock.util.ragged_lists import as_lists, flat_and_form, has_ragged, ragged_rank
from opdock.util.stubbing import StubOutForTesting

_SEED = 87654321


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling script, or its benchmarks if `--benchmarks=REGEX` asks."""

    def tests() -> None:
        unittest.main(argv=argv)

    benchmarks_main(tests, argv)


def is_built_with_cuda() -> bool:
    """Whether an installed backend serves CUDA devices."""
    return any("CUDA" in name or "GPU" in name for name in _device_names())


def is_built_with_rocm() -> bool:
    """False: no backend serves ROCm."""
    return False


def is_built_with_gpu_support() -> bool:
    """Whether an installed backend serves GPUs."""
    return is_built_with_cuda()


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether a session would find a GPU.

    Args:
        cuda_only: count only GPUs that a CUDA backend serves.
        min_cuda_compute_capability: accepted for TF's signature; devices do not tell theirs.
    """
    wanted = ":CUDA:" if cuda_only else ":GPU:"
    return any(wanted in name.upper() for name in _device_names())


def gpu_device_name() -> str:
    """The name of the first GPU, "/device:GPU:0", or "" without one."""
    for name in _device_names():
        if ":GPU:" in name.upper():
            return name[name.upper().index("/DEVICE:") :]
    return ""


def _device_names() -> list[str]:
    with Session(graph=Graph()) as session:
        return [device.name for device in session.list_devices()]


def get_temp_dir() -> str:
    """A directory for the test's files: $TEST_TMPDIR, or one made for this process."""
    global _temp_dir
    if os.environ.get("TEST_TMPDIR"):
        return os.environ["TEST_TMPDIR"]
    if _temp_dir is None:
        _temp_dir = tempfile.mkdtemp(prefix="opdock_test_")
    return _temp_dir


_temp_dir: str | None = None


def test_src_dir_path(relative_path: str) -> str:
    """A path below $TEST_SRCDIR, where a build system put the sources."""
    return os.path.join(os.environ.get("TEST_SRCDIR", os.getcwd()), relative_path)


class TestCase(unittest.TestCase):
    """A unittest.TestCase with sessions and assertions on arrays.

    Before each test the seeds of Python, NumPy and the graph are set and the default graph is
    emptied. Assertions evaluate tensors in the default session.
    """

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._cached: Session | None = None
        self._tempdir: str | None = None

    def setUp(self) -> None:  # noqa: D102
        self._clear_cached_session()
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002 - the generator that TF1 tests use
        reset_default_graph()
        set_random_seed(_SEED)

    def tearDown(self) -> None:  # noqa: D102
        self._clear_cached_session()
        if self._tempdir is not None:
            shutil.rmtree(self._tempdir, ignore_errors=True)
            self._tempdir = None

    # ------------------------------------------------------------ sessions
    def get_temp_dir(self) -> str:
        """A directory of this test alone, removed when it ends."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:  # fmt: skip
        """A session that is the default inside the block; see `cached_session` to keep one.

        Args:
            graph: the graph, the default graph when absent.
            config: a ConfigProto; soft placement is on by default.
            use_gpu: leave placement to the session; otherwise ops go to the CPU.
            force_gpu: put all ops on a GPU.
        """
        with Session(graph=graph, config=_config(config)) as session:
            with _placed(session.graph, use_gpu, force_gpu):
                yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session]:  # fmt: skip
        """The one session of this test, made on first use; see `session` for the arguments."""
        if self._cached is None:
            self._cached = Session(graph=graph, config=_config(config))
        elif graph is not None and self._cached.graph is not graph:
            raise ValueError("The graph used to get the cached session is different.")
        session = self._cached
        with (
            session.graph.as_default(),
            session.as_default(),
            _placed(session.graph, use_gpu, force_gpu),
        ):
            yield session

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> contextlib.AbstractContextManager[Session]:  # fmt: skip
        """`session` with a graph, else `cached_session`; the older name of both."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        make = self.cached_session if graph is None else self.session
        return make(graph, config, use_gpu, force_gpu)

    def _clear_cached_session(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors, in the default session or else the test's one."""
        from opdock.graph.nodes.default_session import get_default_session

        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as kept:
            return kept.run(tensors)

    def _value(self, value: Any) -> Any:
        """Arrays for tensors, and for anything that holds tensors."""
        if is_tensor(value) or hasattr(value, "_composite_parts"):
            return self.evaluate(value)
        return value

    def _array(self, value: Any) -> np.ndarray[Any, Any]:
        given = self._value(value)
        try:
            array = np.asarray(given)
        except ValueError:  # lists that differ in length: an array of lists, as NumPy once made it
            array = np.asarray(given, dtype=object)
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array

    # ------------------------------------------------------------ closeness
    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Asserts that two arrays, tensors or structures of them are near each other."""
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertTrue(isinstance(a, Mapping) and isinstance(b, Mapping), msg)
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"{msg or ''} (key {key!r})")
            return
        if has_ragged(a, b):

            def near(x: Any, y: Any, said: str | None) -> None:
                (x, form), (y, other) = flat_and_form(x), flat_and_form(y)
                self.assertEqual(form, other, said)
                self.assertAllClose(x, y, rtol, atol, said)

            self._assert_ragged(a, b, msg, near)
            return
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and _is_ragged(a, b):
            self.assertEqual(len(a), len(b), msg)
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(x, y, rtol, atol, f"{msg or ''} (element {i})")
            return
        x, y = self._array(a), self._array(b)
        # Half precision has few digits.
        if np.float16 in (x.dtype, y.dtype):
            rtol, atol = max(rtol, 1e-3), max(atol, 1e-3)
        self.assertShapesEqual(x, y, msg)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=msg or "", equal_nan=True)

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2, msg: str | None = None,
    ) -> None:  # fmt: skip
        """`assertAllClose` with the tolerance of the least precise type of the two."""
        a, b = self._value(a), self._value(b)
        kinds = {str(getattr(np.asarray(v), "dtype", "")) for v in (a, b)}
        if kinds & {"float32", "complex64"}:
            rtol, atol = max(rtol, float_rtol), max(atol, float_atol)
        if "float16" in kinds:
            rtol, atol = max(rtol, half_rtol), max(atol, half_atol)
        if "bfloat16" in kinds:
            rtol, atol = max(rtol, bfloat16_rtol), max(atol, bfloat16_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """Asserts that two arrays are not near each other."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements")

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Asserts that two numbers differ by at most `err`."""
        close = f1 == f2 or abs(f1 - f2) <= err
        self.assertTrue(close, f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg else ''}")

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Asserts that two flat arrays differ by at most `err` in each element."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg=msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Asserts that the norm of the difference of two arrays is below `err`."""
        distance = float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)))
        self.assertTrue(distance < err, msg or f"the arrays are {distance} apart")

    # ------------------------------------------------------------ equality
    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays or tensors have equal shapes and elements; NaN equals NaN."""
        if has_ragged(a, b):
            self._assert_ragged(a, b, msg, self.assertEqual)
            return
        x, y = self._array(a), self._array(b)
        if "O" in (x.dtype.kind, y.dtype.kind) or "U" in (x.dtype.kind, y.dtype.kind):
            x, y = _as_bytes(x), _as_bytes(y)
        self.assertShapesEqual(x, y, msg)
        same = x == y
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))
        if not np.all(same):
            where = np.argwhere(~np.asarray(same))[:10].tolist()
            raise AssertionError(
                f"{msg or ''}\nnot equal where = {where}\nnot equal lhs = {x!r}\nnot equal rhs "
                f"= {y!r}"
            )

    def _assert_ragged(self, a: Any, b: Any, msg: str | None, compare: Callable[..., None]) -> None:
        """Compares values, of which one is ragged, and in how many dimensions they are."""
        a, b = self._value(a), self._value(b)
        compare(as_lists(a), as_lists(b), msg)
        if not isinstance(a, (list, tuple)) and not isinstance(b, (list, tuple)):
            self.assertEqual(ragged_rank(a), ragged_rank(b), msg)

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(msg or "The two values are equal at all elements")

    def assertShapesEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays have one shape."""
        self.assertEqual(
            np.shape(a),
            np.shape(b),
            f"Shape mismatch: expected {np.shape(a)}, got {np.shape(b)}. {msg or ''}",
        )

    def assertShapeEqual(self, np_array: Any, tf_tensor: Tensor, msg: str | None = None) -> None:
        """Asserts that a tensor's static shape is that of an array."""
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Asserts the element type of an array, tensor or list of them."""
        for item in target if isinstance(target, (list, tuple)) else [target]:
            dtype = getattr(item, "dtype", None)
            found = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
            self.assertEqual(
                found, np.dtype(getattr(expected_dtype, "as_numpy_dtype", expected_dtype))
            )

    def assertSparseEqual(self, a: Any, b: Any) -> None:
        """Asserts that two sparse values have equal indices, values and shapes."""
        a, b = (
            v if isinstance(v, SparseTensorValue) else SparseTensorValue(*self._value(v))
            for v in (a, b)
        )
        for x, y in zip(a, b, strict=True):
            self.assertAllEqual(x, y)

    # ------------------------------------------------------------ every element
    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Asserts that all elements exceed a value."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Asserts that all elements are below a value."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that no element is below a value."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that no element exceeds a value."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Asserts that every element is one of a set."""
        odd = set(self._array(target).reshape(-1).tolist()) - set(expected_set)
        self.assertFalse(
            odd, f"{len(odd)} unique element(s) are not in the set {expected_set}: {odd}"
        )

    def assertAllInRange(
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Asserts that every element lies between two bounds."""
        value = self._array(target)
        low = value <= lower_bound if open_lower_bound else value < lower_bound
        high = value >= upper_bound if open_upper_bound else value > upper_bound
        self.assertFalse(
            bool(np.any(low | high | np.isnan(value))),
            f"elements are outside the range from {lower_bound} to {upper_bound}",
        )

    # ------------------------------------------------------------ text and protobufs
    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """Asserts how a text begins."""
        self.assertTrue(
            actual.startswith(expected_start),
            msg or f"{actual!r} does not start with {expected_start!r}",
        )

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Asserts that two device names, specs or None mean the same, however they are spelt."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(first, second, f"Devices {first} and {second} are not equal. {msg}")

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any) -> None:
        """Asserts that a message equals another one, or one given as text."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            from google.protobuf import text_format

            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(expected, message)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Asserts that the block raises an OpError whose message matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Asserts that the block raises an exception that matches.

        Args:
            exception_type: the class.
            expected_err_re_or_predicate: a pattern to find in the message (and, for an OpError,
                the name of its op), or a function of the exception.
        """
        matches: Callable[[Any], Any]
        if callable(expected_err_re_or_predicate):
            matches = expected_err_re_or_predicate
        else:
            pattern = re.compile(expected_err_re_or_predicate)

            def matches(error: Any) -> bool:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op = getattr(error, "op", None)
                return (
                    pattern.search(text + (f"\nCaused by op {op.name!r}" if op is not None else ""))
                    is not None
                )

        try:
            yield
        except exception_type as e:
            if not matches(e):
                raise AssertionError(f"Exception of type {type(e)}: {e} does not match") from e
            return
        self.fail(f"{exception_type.__name__} not raised")


def _config(config: Any) -> Any:
    from opdock.io.protos import ConfigProto

    return ConfigProto(allow_soft_placement=True) if config is None else config


@contextlib.contextmanager
def _placed(graph: Graph, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if force_gpu:
        with graph.device("/device:GPU:0"):
            yield
    elif use_gpu:
        yield
    else:
        with graph.device("/device:CPU:0"):
            yield


def _is_ragged(a: Any, b: Any) -> bool:
    """Whether lists hold tensors or rows of different shapes, and so are no arrays."""
    leaves = [*nest.flatten(a), *nest.flatten(b)]
    if any(is_tensor(v) for v in leaves) or any(isinstance(v, Mapping) for v in (*a, *b)):
        return True
    try:
        return np.asarray(a).dtype.kind == "O" or np.asarray(b).dtype.kind == "O"
    except ValueError:
        return True


def _as_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    encoded = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
    return np.array([*encoded, None], object)[:-1].reshape(array.shape)


def assert_equal_graph_def(actual: Any, expected: Any) -> None:
    """Raises AssertionError unless two GraphDefs have equal nodes, in any order."""
    first, second = ({n.name: n for n in g.node} for g in (actual, expected))
    if set(first) != set(second):
        raise AssertionError(f"Nodes differ: {sorted(set(first) ^ set(second))}")
    for name, node in first.items():
        if node != second[name]:
            raise AssertionError(f"Node '{name}' differs:\n{node}\n{second[name]}")


__all__ = [
    "Benchmark", "StubOutForTesting", "TestCase", "assert_equal_graph_def", "benchmark_config",
    "compute_gradient",
    "compute_gradient_error", "get_temp_dir", "gpu_device_name", "is_built_with_cuda",
    "is_built_with_gpu_support", "is_built_with_rocm", "is_gpu_available", "main", "mock",
    "test_src_dir_path",
]  # fmt: skip
