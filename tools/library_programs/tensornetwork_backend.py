"""The fixtures that TensorNetwork's tests ask for: its repository has them, its package has not."""

from __future__ import annotations

import pytest


@pytest.fixture(name="backend", params=["numpy", "tensorflow"])
def backend_fixture(request: pytest.FixtureRequest) -> str:
    """The name of a backend."""
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def _as_in_tensorflow_2() -> None:
    """Operations run as they are made, and the default backend is NumPy."""
    import tensorflow as tf
    import tensornetwork

    tf.compat.v1.enable_v2_behavior()
    tensornetwork.set_default_backend("numpy")
