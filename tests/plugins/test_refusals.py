"""A backend that does without some of core's portable kernels says why, and is heard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("places_programs.py")


def test_explain_shows_the_reason(site: Any) -> None:
    done = site.run(str(PROGRAMS), "refusals")
    values, told = json.loads(done.stdout.splitlines()[-1])
    assert values == [[0.5], [1.0], [1.0], 0.0]
    device, _, why = told["sign"]
    assert device == "CPU:0"
    assert any("PLACE:0" in r and r.endswith(": its divider is too short") for r in why)
    assert told["fine"][:2] == ["PLACE:0", "portable"]
    device, _, why = told["finer"]
    assert device == "CPU:0"
    assert any("PLACE:0" in r and r.endswith(": 53 bits are too many") for r in why)
    device, _, why = told["lonely"]
    assert device == "CPU:0"
    assert any("PLACE:0" in r and r.endswith(": a scalar is too lonely") for r in why)


def test_the_matrix_shows_the_reason(site: Any, tmp_path: Path) -> None:
    command = ("-m", "opdock.cli.main", "conformance", "--device", "place:0", "--level", "L2")
    files = ("--json", str(tmp_path / "r.json"), "--markdown", str(tmp_path / "r.md"))
    site.run(*command, "--op", "Softsign", "--op", "Elu", "--op", "Sinh", *files)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["units"]["L2/Softsign/float32"] == "skipped"
    assert report["units"]["L2/Elu/float32"] == "passed"
    reasons = {c["id"]: (c["kind"], c["reason"]) for c in report["cases"]}
    refused = next(v for k, v in reasons.items() if k.startswith("L2/Softsign/float32"))
    assert refused == ("unsupported", "its divider is too short")
    assert report["units"]["L2/Elu/float64"] == "skipped"
    assert report["units"]["L2/Sinh/float32"] == "passed"
    assert any(
        kind == "declined" and "a scalar is too lonely" in why
        for k, (kind, why) in reasons.items() if k.startswith("L2/Sinh/float32")
    )  # fmt: skip
    matrix = (tmp_path / "r.md").read_text()
    assert "- unsupported: its divider is too short: Softsign " in matrix
    assert "- unsupported: 53 bits are too many: Elu float64" in matrix


def test_a_decomposition_comes_before_a_guests_kernel(site):
    """What core can compute of parts there is not left to who was not asked for."""
    program = """
import opdock as tf
x = tf.placeholder(tf.float32, [4])
with tf.device("/device:ECHO:0"):
    made = tf.math.segment_sum(x, [0, 0, 1, 1])
shown = x + x
with tf.Session() as sess:
    print(sess.run(made, {x: [1, 2, 3, 4]}).tolist())
    for row in sess.explain([made, shown]).rows:
        print(*row.rejections)
"""
    outside = site.run("-c", program).stdout
    assert outside.startswith("[3.0, 7.0]\n")
    assert "it comes last, as the backend does not admit the plugin: OPDOCK_ADMIT=a_pack" in outside
    inside = site.run("-c", program, OPDOCK_ADMIT="a_pack").stdout
    assert inside.startswith("[666.0]\n")
    assert "OPDOCK_ADMIT" not in inside
