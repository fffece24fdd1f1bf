"""`log_device_placement` prints TensorFlow's lines, to stdout, before the values."""

from __future__ import annotations

import re

import pytest

import opdock as tf
from tests.oracle import reference

pytestmark = reference.needs_reference
SOFT = {"gpu2_soft"}
# What each recorded program fetches, in order; None is run without printing.
FETCHES: dict[str, list[tuple[str, bool]]] = {
    "named": [("product", True), ("v.initializer", False), ("v", True)],
}


def programs() -> list[pytest.param]:
    if reference.FOLDER is None:
        return [pytest.param("", "", id="no-reference")]
    text = (reference.FOLDER / "placement" / "log_device_placement.txt").read_text(encoding="utf-8")
    found = []
    for block in text.split("=== program ")[1:]:
        name, rest = block.split("\n", 1)
        source, rest = re.split(r"^--- stdout.*\n", rest, maxsplit=1, flags=re.MULTILINE)
        stdout = rest.split("--- stderr", 1)[0]
        found.append(pytest.param(source.strip(), stdout, id=name))
    return found


@pytest.mark.parametrize(("source", "stdout"), programs())
def test_lines(
    source: str, stdout: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    name = request.node.callspec.id
    config = tf.ConfigProto(log_device_placement=True, allow_soft_placement=name in SOFT)
    with tf.Graph().as_default():
        names = {"tf": tf}
        exec(compile(source, "<program>", "exec"), names)
        with tf.Session(config=config) as sess:
            if any(d.device_type == "GPU" for d in sess.list_devices()):
                pytest.skip("recorded on a machine without a GPU")
            for fetch, shown in FETCHES.get(name, [("product", True)]):
                value = sess.run(eval(fetch, names))
                if shown:
                    print(value)
    assert capfd.readouterr().out == stdout.rstrip("\n") + "\n"
