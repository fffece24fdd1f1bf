"""The device: how values get in and out. `BaseDevice` has defaults for all the rest."""

import array_api_compat.numpy
import numpy as np

from opdock.plugin import NUMBERS, BaseDevice, as_dtype, dtypes, errors


class EchoArray(np.ndarray):
    """A buffer: whatever has `shape` and `dtype` will do. This one is no plain NumPy array."""


class EchoDevice(BaseDevice):
    """Memory that the host does not see: values enter and leave by copies."""

    namespace = array_api_compat.numpy  # works on EchoArray, so core's portable kernels do too
    dtypes = NUMBERS - {dtypes.bfloat16} | {dtypes.bool}  # what NumPy itself has

    def upload(self, array):
        """A copy, so the caller may change `array` afterwards."""
        if as_dtype(array.dtype) not in self.dtypes:
            raise errors.UnimplementedError(None, None, f"echo devices hold no {array.dtype}")
        return np.array(array, order="C").view(EchoArray)

    def download(self, buffer):
        """A fresh host array."""
        return np.array(buffer, order="C", subok=False)
