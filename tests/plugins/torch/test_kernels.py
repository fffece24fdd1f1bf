"""The kernels over PyTorch against the CPU backend's."""

from __future__ import annotations

from tests.plugins.array_library.kernels import Kernels


class TestKernels(Kernels):
    kind = "TORCH"
