"""`tf.distribute.experimental`."""

from __future__ import annotations

from opdock.distribute.parameter_server import CentralStorageStrategy, ParameterServerStrategy

__all__ = ["CentralStorageStrategy", "ParameterServerStrategy"]
