"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# An example's time says how busy the machine is, not whether the code is right.
settings.register_profile("opdock", deadline=None)
settings.load_profile("opdock")
