"""`opdock`, `opdock doctor` and `opdock devices`."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from opdock.cli import _report
from opdock.cli.main import main


def run(*words):
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_help_lists_commands_and_imports_none():
    for name in [n for n in sys.modules if n.startswith("opdock.cli.")]:
        if name != "opdock.cli.main":
            del sys.modules[name]
    text = run("--help")
    assert "doctor" in text and "every plugin with its state" in text
    assert "opdock.cli.doctor" not in sys.modules


def test_version():
    assert run("--version").startswith("opdock, version ")


def test_an_unknown_command_is_refused():
    result = CliRunner().invoke(main, ["main"])
    assert result.exit_code == 2
    assert "No such command" in result.output


def test_doctor_as_json():
    report = json.loads(run("doctor", "--json", "--open"))
    assert report["api_version"] == [1, 2]
    assert {"python", "numpy", "opdock-core"} <= set(report["versions"])
    states = {p["name"]: p["state"] for p in report["plugins"]}
    assert states["cpu"] == "open"
    assert report["failures"] == []
    assert report["faults"] == []


def test_doctor_for_people():
    text = run("doctor", "--traceback")
    assert "plugin API 1.2" in text and "opdock-cpu" in text and "/device:CPU:0" in text


def test_devices():
    assert "/device:CPU:0" in run("devices")
    (cpu,) = [d for d in json.loads(run("devices", "--json")) if d["backend"] == "cpu"]
    assert cpu["name"] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert cpu["automatic"]


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(None, "-"), (5, "5 B"), (1 << 20, "1 MiB"), (3 << 40, "3 TiB")]
)
def test_sizes(n_bytes, text):
    assert _report.size(n_bytes) == text
