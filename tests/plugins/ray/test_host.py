"""Ray is started again where it was too slow to start."""

from __future__ import annotations

import pytest

ray = pytest.importorskip("ray", reason="`make ray` installs it")
host = pytest.importorskip("opdock_ray.host")


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_ray_gets_three_attempts(monkeypatch, capsys, failures):
    calls = []

    def init(**settings):
        calls.append("init")
        if calls.count("init") <= failures:
            raise RuntimeError("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: calls.append("shutdown"))
    if failures == 3:
        with pytest.raises(RuntimeError, match="timed out"):
            host._start_ray()
    else:
        host._start_ray()
    assert calls == ["init", "shutdown"] * failures + ["init"] * (failures < 3)
    assert capsys.readouterr().err.count("is started again") == min(failures, 2)
