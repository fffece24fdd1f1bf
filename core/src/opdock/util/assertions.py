"""What `tf.test.TestCase` is made of: assertions on arrays, checked threads, captured writes."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from absl.testing import absltest

from opdock.graph.nodes.composite import SparseTensorValue
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.util import nest
from opdock.util.ragged_lists import as_lists, flat_and_form, has_ragged, ragged_rank

__all__ = ["ArrayAssertions", "CapturedWrites", "CheckedThread"]


class CheckedThread:
    """A thread of a test: what it raises fails the test.

    Args:
        case: the test.
        target: what it runs.
        args: positional arguments.
        kwargs: keyword arguments.
    """

    def __init__(
        self, case: unittest.TestCase, target: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        self._case = case
        self._call = target, args, kwargs
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self._joined = False

    def _run(self) -> None:
        target, args, kwargs = self._call
        try:
            target(*args, **kwargs)
        except Exception as e:
            self._error = e

    def start(self) -> None:
        """Starts it, once."""
        self._thread.start()

    def join(self) -> None:
        """Waits for its end; what it raised is a failure of the test."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Whether it is running."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """A failure of the test unless the thread was joined."""
        if not self._joined:
            self._case.fail("A checked thread was not joined.")
        if self.is_alive():
            raise RuntimeError(
                "Thread was not joined with main thread, and is still running when the test "
                "finished."
            )


class CapturedWrites:
    """What went to a stream, so far."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def contents(self) -> str:
        """The text."""
        return self._path.read_text()


class ArrayAssertions(absltest.TestCase):
    """Abseil's TestCase with assertions on arrays; whoever derives from it says how to
    `evaluate` tensors."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors."""
        raise NotImplementedError

    def _value(self, value: Any) -> Any:
        """Arrays for tensors, and for anything that holds tensors."""
        if is_tensor(value) or hasattr(value, "_composite_parts"):
            return self.evaluate(value)
        return value

    def _GetNdArray(self, value: Any) -> np.ndarray[Any, Any]:
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
        """Asserts that two arrays, tensors or structures of them are near each other.

        Raises:
            AssertionError: they are not; the message says where, and how far.
            ValueError: the structures differ.
        """
        if has_ragged(a, b):

            def near(x: Any, y: Any, said: str | None) -> None:
                (x, form), (y, other) = flat_and_form(x), flat_and_form(y)
                self.assertEqual(form, other, said)
                self._assert_near(x, y, rtol, atol, "", said)

            self._assert_ragged(a, b, msg, near)
            return
        self._assert_near(a, b, rtol, atol, "", msg)

    def _assert_near(
        self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: str | None
    ) -> None:
        """`assertAllClose` for what lies at a path of two structures."""
        a, b = (v._asdict() if hasattr(v, "_asdict") else v for v in map(self._value, (a, b)))
        said = msg or ""
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {said}")
        if isinstance(a, Mapping):
            keys = f"a{path} has keys {list(a)}, but b{path} has keys {list(b)}"
            self.assertCountEqual(a, b, f"mismatched keys: {keys}. {said}")
            for key in a:
                self._assert_near(a[key], b[key], rtol, atol, f"{path}[{key}]", msg)
        elif isinstance(a, (list, tuple)) and _is_ragged(a, b):
            if len(a) != len(b):
                lengths = f"a{path} has {len(a)} items, but b{path} has {len(b)} items"
                raise ValueError(f"Mismatched length: {lengths}. {said}")
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self._assert_near(x, y, rtol, atol, f"{path}[{i}]", msg)
        else:
            x, y = self._GetNdArray(a), self._GetNdArray(b)
            self._assert_same_shape(x, y, msg)
            if not np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
                here = [f"Mismatched value: a{path} is different from b{path}. {said}"]
                here += _far_apart(x, y, rtol, atol)
                np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg="\n".join(here))

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
        self.assertTrue(self._NDArrayNear(ndarray1, ndarray2, err), msg)

    def _NDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float) -> bool:
        return bool(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)) < err)

    # ------------------------------------------------------------ equality
    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays or tensors have equal shapes and elements; NaN equals NaN."""
        if has_ragged(a, b):
            self._assert_ragged(a, b, msg, self.assertEqual)
            return
        x, y = self._GetNdArray(a), self._GetNdArray(b)
        if "O" in (x.dtype.kind, y.dtype.kind) or "U" in (x.dtype.kind, y.dtype.kind):
            x, y = _as_bytes(x), _as_bytes(y)
        self._assert_same_shape(x, y, msg)
        same = x == y
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))
        if not np.all(same):
            where = np.nonzero(~np.atleast_1d(same))
            lhs, rhs = np.atleast_1d(x)[where], np.atleast_1d(y)[where]
            raise AssertionError(
                f"{msg or ''}\nArrays are not equal\nnot equal where = {where}\n"
                f"not equal lhs = {lhs}\nnot equal rhs = {rhs}"
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

    def _assert_same_shape(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays have one shape."""
        self.assertEqual(
            np.shape(a),
            np.shape(b),
            f"Shape mismatch: expected {np.shape(a)}, got {np.shape(b)}{_contents(b)}. {msg or ''}",
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
        self.assertGreater(np.min(self._GetNdArray(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Asserts that all elements are below a value."""
        self.assertLess(np.max(self._GetNdArray(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that no element is below a value."""
        self.assertGreaterEqual(np.min(self._GetNdArray(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that no element exceeds a value."""
        self.assertLessEqual(np.max(self._GetNdArray(a)), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Asserts that every element is one of a set."""
        odd = set(self._GetNdArray(target).reshape(-1).tolist()) - set(expected_set)
        self.assertFalse(
            odd, f"{len(odd)} unique element(s) are not in the set {expected_set}: {odd}"
        )

    def assertAllInRange(
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Asserts that every element lies between two bounds."""
        value = self._GetNdArray(target)
        if value.dtype.kind not in "fiu":
            raise AssertionError(
                f"The value of {value} does not have an ordered numeric type, instead it has "
                f"type: {value.dtype}"
            )
        low = value <= lower_bound if open_lower_bound else value < lower_bound
        high = value >= upper_bound if open_upper_bound else value > upper_bound
        self.assertFalse(
            bool(np.any(low | high | np.isnan(value))),
            f"elements are outside the range from {lower_bound} to {upper_bound}",
        )


def _is_ragged(a: Any, b: Any) -> bool:
    """Whether lists hold tensors, mappings or rows of different shapes, and so are no arrays."""
    leaves = [*nest.flatten(a), *nest.flatten(b)]
    rows = [v for rows in (a, b) if isinstance(rows, (list, tuple)) for v in rows]
    if any(map(is_tensor, leaves)) or any(isinstance(v, Mapping) for v in rows):
        return True
    try:
        return np.asarray(a).dtype.kind == "O" or np.asarray(b).dtype.kind == "O"
    except ValueError:
        return True


def _contents(array: Any) -> str:
    """What is in an array, if that is not much."""
    value = np.asarray(array)
    return f" with contents {value}" if value.size < 500 else ""


def _far_apart(a: Any, b: Any, rtol: float, atol: float) -> list[str]:
    """Where two arrays are not near each other, with what is there."""
    x, y = np.atleast_1d(a), np.atleast_1d(b)
    difference, tolerance = np.abs(x - y), atol + rtol * np.abs(y)
    where = np.nonzero((difference > tolerance) | (np.isnan(x) != np.isnan(y)))
    parts = {"lhs": x, "rhs": y, "dif": difference, "tol": tolerance}
    return [
        f"not close where = {where}",
        *(f"not close {name} = {part[where]}" for name, part in parts.items()),
        f"dtype = {a.dtype}, shape = {a.shape}",
    ]


def _as_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    encoded = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
    return np.array([*encoded, None], object)[:-1].reshape(array.shape)
