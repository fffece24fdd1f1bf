"""Programs on several devices over JAX."""

from __future__ import annotations

from tests.plugins.array_library.programs import Programs


class TestPrograms(Programs):
    kind = "JAX"
    kernels = "opdock_jax.kernels"
