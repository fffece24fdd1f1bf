"""`make jax` runs this folder; it needs JAX, which `make setup` does not install."""

from __future__ import annotations

import os

# Before JAX starts, here and in processes of the tests: several devices on any machine, and code
# that is quickly made rather than fast, for every sample has shapes of its own to compile for.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false",
)
