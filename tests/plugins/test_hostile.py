"""Hostile plugins, really installed: they take nothing from anybody, and are told by name."""

from __future__ import annotations

import pytest

TASK = "/job:localhost/replica:0/task:0"

SUM = """
import opdock as tf
x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
with tf.device({device!r}):
    total = x + y
    if {relu}:
        total = tf.nn.relu(total)
with tf.Session() as sess:
    print(sess.run(total, {{x: [1, 2], y: [3, 4]}}).tolist())
    print({{r.op: r.device for r in sess.explain(total, {{x: [1, 2], y: [3, 4]}}).rows}}["AddV2"])
"""


def sums(site, device, relu=False, *flags, **environ):
    """The sum that a session prints, and the device where it was computed."""
    program = SUM.format(device=device, relu=relu)
    value, where = site.run(*flags, "-c", program, **environ).stdout.splitlines()
    return value, where.removeprefix(f"{TASK}/device:")


RIGHT, WRONG = "[4.0, 6.0]", "[666.0, 666.0]"


# ---------------------------------------------------------------- what belongs to others
@pytest.fixture(scope="module")
def report(site):
    return site.doctor("--open")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("twin", "opdock-cpu has an entry point 'cpu' already"),
        ("claimant", "'cpu' (opdock-cpu) has a backend with the own_type 'CPU' already"),
        ("commoner", "the backends 'gadget_a' and 'gadget_b' share the type 'GADGET'"),
    ],
)
def test_who_claims_the_type_of_others_is_quarantined(report, target, reason):
    (status,) = (p for p in report["plugins"] if p["target"] == f"fixture_usurper.{target}")
    assert (status["state"], status["kind"]) == ("quarantined", "duplicate")
    assert reason in status["reason"]


def test_devices_keep_their_names(report):
    backends = {d["name"].removeprefix(f"{TASK}/device:"): d["backend"] for d in report["devices"]}
    assert backends["CPU:0"] == "cpu"
    assert backends["GADGET:0"] == "gadget_a"
    assert backends["GADGET_B:0"] == "gadget_b"
    # Whoever asks for a guest by its own type gets it; nobody else does.
    assert (backends["A_GUEST:0"], backends["A_LODGER:0"]) == ("a_guest", "a_lodger")
    assert not any(d["automatic"] for d in report["devices"] if d["backend"].startswith("a_"))


def test_doctor_tells_the_guests_why_they_stay_outside(site, report):
    told = {b["name"]: b["outside"] for p in report["plugins"] for b in p["backends"]}
    assert told["a_guest"] == (
        "the type CPU belongs to backend 'cpu', which does not admit 'a_guest' "
        "(OPDOCK_ADMIT=a_guest would)"
    )
    assert "GADGET_B belongs to backend 'gadget_b'" in told["a_lodger"]
    assert not told["cpu"]
    assert any(
        "backend 'cpu' does not admit 'a_pack' (opdock-a-usurper): its kernels are for what" in line
        for line in report["notes"]
    )
    printed = site.run("-m", "opdock.cli.main", "doctor", COLUMNS="400").stdout
    assert "not in the pool: the type CPU belongs to backend 'cpu'" in printed


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("", "CPU:0"),
        ("/cpu:0", "CPU:0"),
        ("/device:GADGET_A:0", "GADGET:0"),
        ("/device:GADGET_B:0", "GADGET_B:0"),
    ],
)
def test_every_device_computes_what_it_did(site, device, name):
    relu = "CPU" in name
    assert sums(site, device, relu, "-W", "error") == (RIGHT, name)


@pytest.mark.parametrize("admitted", ["a_guest", "a_pack", "opdock-a-usurper"])
def test_the_user_may_let_them_in(site, admitted):
    """Which shows that nothing but the rule holds them back."""
    assert sums(site, "/cpu:0", OPDOCK_ADMIT=admitted) == (WRONG, "CPU:0")


def test_an_owner_may_let_them_in(site, tmp_path):
    """`BackendSpec.admits`, on a backend in a file of its own."""
    file = tmp_path / "host_backend.py"
    for admits, value in (((), RIGHT), (("a_pack",), WRONG)):
        file.write_text(HOST.replace("admits=()", f"admits={admits!r}"), encoding="utf-8")
        found = sums(site, "/device:HOST_BACKEND:0", True, OPDOCK_PLUGINS=str(file))
        assert found == (value, "HOST_BACKEND:0")


HOST = '''
import array_api_compat.numpy
import numpy as np
from opdock.plugin import BackendSpec, BaseDevice, DeviceAttributes, Probe, hookimpl

@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="host_backend", device_type="HOST_BACKEND", own_type="HOST_BACKEND", api=(1, 0),
        priority=-50, probe="host_backend:probe", device="host_backend:Device", kernels=(),
        admits=(),
    )

def probe():
    return Probe(devices=[DeviceAttributes(index=0)])

class Device(BaseDevice):
    namespace = array_api_compat.numpy

    def upload(self, array):
        return np.array(array)

    def download(self, buffer):
        return np.array(buffer)
'''
