"""What all tests here are in: operations that run as they are made."""

import pytest

from opdock.eager.modes import eager_mode


@pytest.fixture(autouse=True)
def eagerly():
    with eager_mode(alone=True):
        yield
