"""The device: how values get in and out. `BaseDevice` has defaults for all the rest."""

import array_api_compat.numpy
import numpy as np

from opdock.plugin import NUMBERS, BaseDevice, as_dtype, errors


class EchoArray(np.ndarray):
    """A buffer: whatever has `shape` and `dtype` will do. This one is no plain NumPy array."""


class EchoDevice(BaseDevice):
    """Memory that the host does not see: values enter and leave by copies."""

    namespace = array_api_compat.numpy  # works on EchoArray, so core's portable kernels do too
    dtypes = NUMBERS | {as_dtype(bool)}

    def upload(self, array):
        """A copy, so the caller may change `array` afterwards."""
        if array.dtype == object:
            raise errors.UnimplementedError(None, None, "echo devices hold no strings")
        return np.array(array, order="C").view(EchoArray)

    def download(self, buffer):
        """A fresh host array."""
        return np.array(buffer, order="C", subok=False)
