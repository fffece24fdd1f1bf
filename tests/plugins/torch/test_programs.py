"""Programs on several devices over PyTorch."""

from __future__ import annotations

from tests.plugins.array_library.programs import Programs


class TestPrograms(Programs):
    kind = "TORCH"
    kernels = "opdock_torch.kernels"
