"""NumPy as the array API has it, with what core's portable kernels ask of a namespace beyond."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import array_api_compat.numpy as xp

from opdock_cpu.folds import fold_rows

__all__ = ["namespace"]

namespace: Any = ModuleType("opdock_cpu.namespace.namespace")
# Attributes of its own: to pass each look-up on would cost more than many a kernel.
vars(namespace).update(vars(xp), fold_rows=fold_rows)
