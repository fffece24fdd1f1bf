"""What tests of plugins share."""

from __future__ import annotations

import pytest

from opdock.plugins.manager import PluginManager


@pytest.fixture
def manager(monkeypatch):
    """A manager that sees no installed plugin."""
    monkeypatch.setattr("opdock.plugins.discovery.announced", lambda *groups: [])
    for name in ("OPDOCK_PLUGINS", "OPDOCK_DISABLE", "OPDOCK_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    return PluginManager()
