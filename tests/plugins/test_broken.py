"""Broken plugins, really installed: each gets its state and reason, and harms nobody else."""

from __future__ import annotations

import json

import pytest

BROKEN = {
    "raises-on-import": ("import-error", "libgadget.so.7"),
    "api-too-new": ("api-too-new", "written for plugin API 1.99; this opdock-core has 1.2"),
    "api-too-old": ("api-too-old", "written for plugin API 0.9"),
    "hook-typo": ("unknown-hook", "'opdock_backend'; did you mean 'opdock_backends'?"),
    "wrong-type": ("wrong-type", "opdock_backends() must yield BackendSpec"),
    "twin": ("duplicate", "opdock-fixture-gadget-a has an entry point 'gadget_a' already"),
    "same-type": ("duplicate", "has a backend with the own_type 'GADGET_B' already"),
    "probe-crashes": ("probe-crashed", "OSError: ioctl 0x2a failed"),
    "namesake": ("import-error", "'MatMul' is an op of opdock's; give yours a prefix: 'acme>Mat"),
}


@pytest.fixture(scope="module")
def plugins(site):
    return site.plugins()


@pytest.mark.parametrize("name", BROKEN)
def test_doctor_tells_what_is_wrong(plugins, name):
    kind, reason = BROKEN[name]
    status = plugins[f"opdock-fixture-{name}"]
    assert (status["state"], status["kind"]) == ("quarantined", kind)
    assert reason in status["reason"]
    assert status["version"] == "1.2.3"


def test_a_probe_that_hangs_is_given_up(site):
    found = site.plugins(FIXTURE_HANGS="1", OPDOCK_PROBE_TIMEOUT="2")["opdock-fixture-probe-hangs"]
    assert (found["state"], found["kind"]) == ("quarantined", "probe-timeout")
    assert "gave no answer in 2 s" in found["reason"]


def test_what_raised_keeps_its_traceback(plugins):
    for name in ("raises-on-import", "probe-crashes"):
        assert (
            f"fixture_{name.replace('-', '_')}.py" in plugins[f"opdock-fixture-{name}"]["traceback"]
        )


def test_the_others_work(plugins):
    for name in ("opdock-cpu", "opdock-fixture-gadget-a", "opdock-fixture-gadget-b"):
        assert plugins[name]["state"] == "probed", plugins[name]
        assert plugins[name]["backends"][0]["devices"]


def test_a_session_that_does_not_ask_is_not_disturbed(site):
    program = """
import opdock as tf
with tf.Session() as sess:
    print(sess.run(tf.constant([1.0, 2.0]) + 1.0))
"""
    assert site.run("-W", "error", "-c", program).stdout == "[2. 3.]\n"


def test_an_op_of_core_keeps_its_name(site):
    """Though nobody has used it yet when the plugin is loaded."""
    program = """
import opdock.plugin
opdock.plugin.load()
import opdock as tf
with tf.Session() as sess:
    print(sess.run(tf.matmul([[2.0]], [[3.0]])))
"""
    assert site.run("-c", program).stdout == "[[6.]]\n"


def test_json_is_all_that_a_command_prints_on_stdout(site):
    """Whatever a plugin prints while it is imported."""
    done = site.run("-m", "opdock.cli.main", "doctor", "--json", FIXTURE_NOISY="1")
    assert json.loads(done.stdout)["plugins"]
    assert "namesake is being imported" in done.stderr


def test_a_session_that_asks_gets_the_reason(site):
    program = """
import opdock as tf
with tf.device("/device:CRASH:0"):
    x = tf.constant(1.0) + 1.0
try:
    tf.Session().run(x)
except tf.errors.InvalidArgumentError as e:
    print(e)
"""
    assert "ioctl 0x2a failed" in site.run("-c", program).stdout


def test_strict_raises(site):
    done = site.run("-m", "opdock.cli.main", "doctor", check=False, OPDOCK_STRICT_PLUGINS="1")
    assert done.returncode != 0
    assert "PluginError" in done.stderr
    assert "is quarantined" in done.stderr


def test_disabled_plugins_are_not_imported(site):
    plugins = site.plugins(OPDOCK_DISABLE="raises_on_import,opdock-fixture-probe-hangs")
    for name in ("raises-on-import", "probe-hangs"):
        status = plugins[f"opdock-fixture-{name}"]
        assert (status["kind"], status["reason"]) == ("blocked", "OPDOCK_DISABLE names it")
        assert not status["traceback"]


def test_only_named_plugins_are_used(site):
    plugins = site.plugins(OPDOCK_PLUGINS="cpu,gadget_b")
    used = {p["name"] for p in plugins.values() if p["state"] != "quarantined"}
    assert used == {"cpu", "gadget_b"}


def test_a_name_that_is_not_installed_is_told(site):
    report = site.doctor(OPDOCK_PLUGINS="cpu,gadget_z")
    missing = next(p for p in report["plugins"] if p["name"] == "gadget_z")
    assert missing["kind"] == "import-error"
    assert "gadget_b" in missing["reason"]


def test_a_file_is_a_plugin(site, tmp_path):
    file = tmp_path / "inline_backend.py"
    file.write_text(
        "from opdock.plugin import BackendSpec, DeviceAttributes, Probe, hookimpl\n"
        "@hookimpl\n"
        "def opdock_backends():\n"
        "    yield BackendSpec(name='inline', device_type='INLINE', own_type='INLINE',\n"
        "        api=(1, 0), probe='inline_backend:probe', device='inline_backend:D', kernels=())\n"
        "def probe():\n"
        "    return Probe(devices=[DeviceAttributes(index=0)])\n",
        encoding="utf-8",
    )
    report = site.doctor(OPDOCK_PLUGINS=str(file))
    states = {p["name"]: p["state"] for p in report["plugins"]}
    assert states["inline_backend"] == "probed"
    assert states["cpu"] == "probed"  # a file alone hides nothing
    assert "/job:localhost/replica:0/task:0/device:INLINE:0" in {
        d["name"] for d in report["devices"]
    }


def test_no_device_at_all_is_an_exit_status(site):
    done = site.run(
        "-m", "opdock.cli.main", "doctor", check=False, OPDOCK_PLUGINS="raises_on_import"
    )
    assert done.returncode == 1
    assert "import-error" in done.stdout
