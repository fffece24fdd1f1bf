"""The same bits in every process and for any number of threads: `tools/same_bits.py`."""

from __future__ import annotations

import pytest

from tests.plugins.array_library.same_bits import differing


@pytest.mark.parametrize(
    ("device", "programs"),
    [
        ("CPU", 0),
        pytest.param("CPU", 12, marks=pytest.mark.prove),
        pytest.param("OPENCL", 4, marks=pytest.mark.prove),
    ],
)
def test_threads_and_compiled_code_change_no_bit(device: str, programs: int) -> None:
    assert not differing(device, programs)
