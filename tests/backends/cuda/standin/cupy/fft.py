"""NumPy's Fourier transforms on arrays of the stand-in."""

from __future__ import annotations

import numpy as np

from cupy import _function

__all__ = list(np.fft.__all__)
for _name in __all__:
    globals()[_name] = _function(getattr(np.fft, _name))
