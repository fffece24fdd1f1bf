"""Stand-ins for what libraries import at their top and opdock does not have."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.mapping import absent, coverage

NAMED = "tensorflow.python.tpu.tpu_function.TpuContext is not there: there are no TPUs here"


def test_a_stand_in_serves_as_a_class_until_it_is_called() -> None:
    placed = absent.stand_in("python.tpu.tpu_function", "TpuContext")
    assert isinstance(placed, type) and placed.__name__ == "TpuContext"
    assert not isinstance(3, placed)
    with pytest.raises(tf.errors.UnimplementedError, match=NAMED):
        placed(1, number=2)
    # What is in it is absent too, and says where it was looked for.
    with pytest.raises(tf.errors.UnimplementedError, match=r"tpu_function\.TpuContext\.of is not"):
        placed.of()
    assert not hasattr(placed, "__wrapped__")


def test_a_class_of_a_program_may_descend_from_one() -> None:
    class Mine(absent.stand_in("python.tpu.tpu_function", "TpuContext")):
        factor = 2

        @staticmethod
        def doubled(value: int) -> int:
            return Mine.factor * value

    assert Mine.doubled(2) == 4
    with pytest.raises(tf.errors.UnimplementedError, match=NAMED):
        Mine()


def test_only_what_is_listed_has_one() -> None:
    assert absent.stand_in("python.ops.control_flow_ops", "XLAControlFlowContext") is not None
    assert absent.stand_in("python.ops.control_flow_ops", "no_such_name") is None
    assert absent.stand_in("python.tpuish", "name") is None
    assert absent.stand_in("python.debug", "DumpingDebugWrapperSession") is not None


def test_they_are_found_where_programs_import_them() -> None:
    from opdock.python.eager import context
    from opdock.python.tpu.tpu_function import TpuContext

    assert isinstance(TpuContext, type)
    assert context.executing_eagerly() is False  # what is there comes first


def test_what_is_said_of_a_name_that_is_absent_is_why():
    told = coverage.told("python.debug.wrappers.hooks.LocalCLIDebugHook")
    assert "OPD-NAME-002" in told
    assert "tfdbg is out of scope" in told
