"""Samples and oracles of an installed plugin, for an op of its own, through public modules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

OP = "place>Thrice"


def conform(
    site: Any, report: Path, mood: str = ""
) -> tuple[subprocess.CompletedProcess, dict[str, Any]]:
    done = site.run(
        "-m", "opdock.cli.main", "conformance", "--device", "place:0", "--op", OP,
        "--level", "L2", "--level", "L3", "--json", str(report),
        check=False, FIXTURE_SAMPLES=mood, OPDOCK_PLUGINS="place,cpu",
    )  # fmt: skip
    return done, json.loads(report.read_text())


def test_an_op_is_proven_by_its_authors_samples(site: Any, tmp_path: Path) -> None:
    done, report = conform(site, tmp_path / "report.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["units"] == {
        f"L2/{OP}/float32": "passed", f"L2/{OP}/float64": "passed", f"L2/{OP}/errors": "passed",
        f"L3/{OP}/float32": "passed", f"L3/{OP}/float64": "passed",
    }  # fmt: skip
    counts = {name: level["cases"] for name, level in report["levels"].items()}
    assert counts["L2"] >= 2 * 3 + 1 and counts["L3"] >= 2


def test_a_wrong_oracle_is_a_failure(site: Any, tmp_path: Path) -> None:
    done, report = conform(site, tmp_path / "report.json", "wrong")
    assert done.returncode == 1
    assert report["units"][f"L2/{OP}/float32"] == "failed"


def test_samples_that_cannot_be_imported_are_a_failure(site: Any, tmp_path: Path) -> None:
    done, report = conform(site, tmp_path / "report.json", "broken")
    assert done.returncode == 1
    assert report["units"]["L2/samples of fixture_places_samples"] == "failed"
    assert "plugin 'place': ImportError: the samples are out" in json.dumps(report["cases"])
