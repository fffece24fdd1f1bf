"""`tf.debugging`: assertions and numeric checks under their newer names."""

from __future__ import annotations

from opdock.ops.check import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from opdock.ops.composed.check_shapes import assert_shapes
from opdock.ops.composed.check_static import (
    assert_integer,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_type,
)
from opdock.ops.composed.numerics import verify_tensor_all_finite as assert_all_finite
from opdock.ops.elementary import is_finite, is_inf, is_nan
from opdock.ops.identity import check_numerics
from opdock.runtime.process_settings import settings

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics",
    "get_log_device_placement", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_numeric_tensor", "is_strictly_increasing", "set_log_device_placement",
]  # fmt: skip


def get_log_device_placement() -> bool:
    """What `set_log_device_placement` was given; False at first."""
    return bool(settings.log_placement)


def set_log_device_placement(enabled: bool) -> None:
    """Sets `ConfigProto.log_device_placement` of sessions without a ConfigProto.

    Args:
        enabled: whether it is on.
    """
    settings.log_placement = bool(enabled)
