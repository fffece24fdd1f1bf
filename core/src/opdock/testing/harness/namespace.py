"""The public TF1 namespace for the suite's programs.

Tensors get their operators when the ops load, which static types do not show; programs are written
as users write them, so here the namespace has no types.
"""

from __future__ import annotations

from typing import Any, Final

import opdock

tf: Final[Any] = opdock
