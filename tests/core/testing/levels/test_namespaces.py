"""A namespace that is almost the array API standard is told by the functions in which it is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock.plugin as api
from opdock.kernels.numpy_namespace import NumpyNamespace
from opdock.testing.levels.lifecycle import lifecycle_units
from opdock.testing.levels.namespaces import check_namespace


class Arrays(api.BaseDevice):
    """NumPy's arrays, and a namespace with a fault or without."""

    def upload(self, array: Any) -> Any:
        return np.array(array, order="C")

    def download(self, buffer: Any) -> Any:
        return np.array(buffer, order="C")


def under_test(held: frozenset[Any] | None = None, **parts: Any) -> Any:
    device = Arrays(api.DeviceAttributes(index=0, description="arrays"))
    makers = {name: lambda part=part: part for name, part in parts.items()}
    device.namespace = NumpyNamespace("nearly", makers)
    return SimpleNamespace(device=device, dtypes=held)


def absent() -> Any:
    raise AttributeError("no such function")


def writes(x: Any, **axes: Any) -> Any:
    result = np.flip(x, **axes).copy()
    x[...] = 0
    return result


def test_numpy_is_one() -> None:
    check_namespace(under_test())


def test_a_device_of_few_types_is_asked_for_those() -> None:
    three = frozenset({api.dtypes.float32, api.dtypes.int32, api.dtypes.bool})
    check_namespace(under_test(three, float64=np.float32, int64=np.int32))
    with pytest.raises(Exception, match="does not hold float32, int32 and bool"):
        check_namespace(under_test(frozenset({api.dtypes.float64})))


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"sum": lambda x, axis=None, keepdims=False: np.sum(x, axis, keepdims=keepdims)},
         r"sum\(x, axis=\(0,\), keepdims=True, dtype=float32\) raised TypeError"),
        ({"asarray": lambda x, dtype=None, device=None, copy=None: np.asarray(x, dtype)},
         r"asarray\(x, copy=True\) gave x itself"),
        ({"argmax": lambda x, axis: np.asarray(np.argmax(x, axis), np.uint32)},
         r"argmax\(x, axis=1\) gave uint32"),
        ({"permute_dims": lambda x, axes: x}, r"permute_dims\(x, \(1, 0\)\) gave the shape"),
        ({"maximum": np.minimum, "min": np.max}, r"min\(x, axis=\(1,\)\) gave \[1.5, 3.0\], not"),
        ({"where": lambda b, x, y: np.asarray(np.where(b, x, y), np.float64)},
         r"where\(b, x, zeros_like\(x\)\) gave float64, not float32"),
        ({"flip": writes}, "wrote to its argument, float32"),
        ({"float16": np.float32}, r"gave float32 for t = float16"),
        ({"sort": lambda x: np.sort(x)}, r"sort\(x, axis=0\) raised TypeError"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_told(parts: dict[str, Any], told: str) -> None:
    with pytest.raises(Exception, match=told) as caught:
        check_namespace(under_test(**parts))
    assert str(caught.value).startswith("namespace nearly: ")


def test_a_namespace_may_lack_functions() -> None:
    dut = under_test()
    dut.device.namespace._parts = {"take": absent, "matrix_transpose": absent}
    check_namespace(dut)


def test_devices_without_a_namespace_have_no_such_unit() -> None:
    dut = under_test()
    names = [unit.op for unit in lifecycle_units(dut)]
    dut.device.namespace = None
    assert [unit.op for unit in lifecycle_units(dut)] == [n for n in names if n != "namespace"]
    assert "namespace" in names
