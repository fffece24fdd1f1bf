"""Hostile plugins, really installed: they take nothing from anybody, and are told by name."""

from __future__ import annotations

import json

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
        ("passer", "'passes' (opdock-fixture-passes) has a graph pass 'passes_tidy' already"),
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
    refused = "backend 'cpu' does not admit 'a_pack' (opdock-a-usurper): its kernels are for its"
    assert any(refused in line for line in report["notes"])
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


BETWEEN = """
import opdock as tf
x = tf.placeholder(tf.float32, [2])
with tf.device("/device:ECHO:0"):
    y = x + x
with tf.device("/device:CPU:0"):
    z = y * y
with tf.Session() as sess:
    print(sess.run(z, {x: [1, 2]}).tolist())
"""


@pytest.mark.parametrize(("admits", "value"), [("", [4.0, 16.0]), ("a_smuggler", [443556.0] * 2)])
def test_values_take_no_way_that_a_stranger_offers(site, admits, value):
    printed = site.run("-c", BETWEEN, OPDOCK_ADMIT=admits).stdout
    assert printed == f"{value}\n"


def test_doctor_names_routes_and_excuses_of_strangers(report):
    notes = [line for line in report["notes"] if "'a_smuggler'" in line]
    for ends, owners in (
        ("ECHO to CPU", "'echo' or 'cpu'"), ("host to ECHO", "'echo'"),
        ("GADGET_A to GADGET_A", "'gadget_a'"),
    ):  # fmt: skip
        told = (
            f"the copy route {ends} of 'a_smuggler' (opdock-a-usurper) is left out: it is not "
            f"admitted by {owners} (OPDOCK_ADMIT=a_smuggler would let it in)"
        )
        assert told in notes
    told = (
        "backend 'gadget_a' does not admit 'a_smuggler' (opdock-a-usurper): what it says of that "
        "backend's conformance is left out, records: 2 (OPDOCK_ADMIT=a_smuggler would let them in)"
    )
    assert told in notes
    assert len(notes) == 4


@pytest.mark.parametrize(("admits", "status"), [("", "passed"), ("a_smuggler", "skipped")])
def test_a_stranger_excuses_nobody(site, admits, status):
    command = ("-m", "opdock.cli.main", "conformance", "--device", "gadget_a:0", "--json", "-")
    done = site.run(*command, "--level", "L2", "--op", "AddV2", OPDOCK_ADMIT=admits)
    assert json.loads(done.stdout)["units"]["L2/AddV2/float32"] == status


def test_a_report_with_failures_says_what_was_left_out(site):
    command = ("-m", "opdock.cli.main", "conformance", "--device", "mangler:0", "--level", "L0")
    done = site.run(
        *command, "--op", "mutate-after-upload", check=False, FIXTURE_MANGLES="download-dtype"
    )
    assert done.returncode == 1
    assert "left out backend 'gadget_a' does not admit 'a_smuggler'" in done.stdout


def test_a_pass_that_wants_anothers_name_does_not_run(site):
    assert sums(site, "") == (RIGHT, "CPU:0")
    program = SUM.format(device="", relu=False)
    done = site.run("-c", program, OPDOCK_PLUGINS="a_passer,cpu", check=False)
    # Alone it may have the name, and does what it does.
    assert done.stdout.startswith("[1.0, 2.0]")


def test_an_owner_may_let_them_in(site, tmp_path):
    """`BackendSpec.admits`, on a backend in a file of its own."""
    file = tmp_path / "host_backend.py"
    for admits, value in (((), RIGHT), (("a_pack",), WRONG)):
        file.write_text(HOST.replace("admits=()", f"admits={admits!r}"), encoding="utf-8")
        found = sums(site, "/device:HOST_BACKEND:0", True, OPDOCK_PLUGINS=str(file))
        assert found == (value, "HOST_BACKEND:0")


HOST = """
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
"""


# ---------------------------------------------------------------- what kernels and copies give
RUN = """
import json
import opdock as tf
said = {{}}
for expression in {expressions!r}:
    with tf.Graph().as_default(), tf.Session({config}) as sess:
        x = tf.placeholder(tf.float32, [3, 2], name="x")
        y = tf.placeholder(tf.float32, [3, 2], name="y")
        with tf.device("/device:{device}:0"):
            made = eval(expression)
        try:
            found = sess.run(made, {{x: [[1, 2], [3, 4], [5, 6]], y: [[2, 2], [2, 2], [2, 2]]}})
            said[expression] = str(found)
        except tf.errors.OpError as e:
            said[expression] = f"{{type(e).__name__}} {{e.message}}"
print(json.dumps(said))
"""


def run_all(site, device, expressions, config="", **environ):
    """What each expression gives on a device, or its error, in one process."""
    program = RUN.format(device=device, expressions=[*expressions], config=config)
    return json.loads(site.run("-W", "error", "-c", program, **environ).stdout)


def run(site, device, expression, config="", **environ):
    return run_all(site, device, [expression], config, **environ)[expression]


def named(kernel, plugin, device):
    return (
        f"kernel fixture_{plugin}.{kernel} of plugin '{plugin}' (opdock-fixture-{plugin}) on "
        f"{TASK}/device:{device}:0"
    )


LIES = {
    "wrong_dtype": ("AddV2", "x + y", "output 0 of {kernel} has dtype float64, expected float32"),
    "wrong_shape": ("Mul", "x * y", "output 0 of {kernel} has shape [1,3,2], expected [3,2]"),
    "wrong_type": (
        "Sub", "x - y", "output 0 of {kernel} is of type list, expected fixture_liar.Buffer",
    ),
    "wrong_number": (
        "Unpack", "tf.unstack(x)", "the result of {kernel} is 2, expected a tuple of 3 outputs",
    ),
    "writes_to_its_input": (
        "Neg", "-x", "input 0 of {kernel} was changed by the kernel, and inputs are read-only",
    ),
    "gives_its_input": (
        "Square", "tf.square(x)",
        "output 0 of {kernel} is memory of input 0, which may_alias denies",
    ),
    "ignores_out": (
        "RealDiv", "tf.maximum(x / y, y)",
        "output 0 of {kernel} is not in the buffer that the kernel got as `out`",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def checked(site):
    expressions = (expression for _, expression, _ in LIES.values())
    return run_all(site, "LIAR", [*expressions, "tf.maximum(x, y)"], OPDOCK_CHECK="1")


@pytest.mark.parametrize("kernel", LIES)
def test_a_result_that_is_not_what_it_should_be(checked, kernel):
    op, expression, told = LIES[kernel]
    printed = checked[expression]
    assert printed.startswith("InternalError OPDOCK_CHECK: ")
    assert f" ({op}): {told.format(kernel=named(kernel, 'liar', 'LIAR'))}" in printed
    assert "defined at" in printed


def test_a_right_kernel_passes_the_checks(checked):
    assert checked["tf.maximum(x, y)"].startswith("[[2. 2.]")


def test_without_the_switch_nothing_is_checked(site):
    assert run(site, "LIAR", "x * y").startswith("[[[")
    assert "OPDOCK_CHECK" not in run(site, "LIAR", "x + y", OPDOCK_CHECK="0")


MANGLED = {
    "upload-shape": "upload from host to {device} by backend {who} has shape [6], expected [3,2]",
    "upload-dtype": (
        "upload from host to {device} by backend {who} has dtype float16, expected float32, once "
        "it is downloaded again"
    ),
    "upload-type": (
        "upload from host to {device} by backend {who} is of type numpy.ndarray, expected "
        "fixture_mangler.Buffer"
    ),
    "download-shape": "has shape [2,3], expected [3,2]",
    "download-dtype": "has dtype float64, expected float32",
    "download-type": "is of type list, expected numpy.ndarray",
}


@pytest.mark.parametrize("how", MANGLED)
def test_a_copy_that_changes_what_it_carries(site, how):
    printed = run(site, "MANGLER", "x + y", OPDOCK_CHECK="1", FIXTURE_MANGLES=how)
    assert printed.startswith("InternalError OPDOCK_CHECK: x:0/copy_to_MANGLER0 ")
    told = MANGLED[how].format(
        device=f"{TASK}/device:MANGLER:0", who="'mangler' (opdock-fixture-mangler)"
    )
    assert told in printed
    assert "backend 'mangler' (opdock-fixture-mangler)" in printed


def test_copies_that_are_right_pass_the_checks(site):
    assert run(site, "MANGLER", "x + y", OPDOCK_CHECK="1").startswith("[[3. 4.]")


# ---------------------------------------------------------------- kernels that give no answer
DEFECTS = {
    "seven": (
        "waverer", "AddV2", "x + y",
        "its when() returned 7, which is neither True nor False nor a reason",
    ),
    "nothing": (
        "waverer", "Mul", "x * y",
        "its when() returned None, which is neither True nor False nor a reason",
    ),
    "raises": ("waverer", "Sub", "x - y", "its when() raised KeyError: 'Tidx'"),
    "unknown_attribute": (
        "stranger", "AddV2", "x + y",
        "it constrains dtype, which the node does not have (it has T)",
    ),
    "no_type_attribute": (
        "stranger", "MatMul", "tf.matmul(x, y, transpose_b=True)",
        "it constrains transpose_a, which is no type attribute (it has T)",
    ),
    "impossible_type": ("stranger", "Neg", "-x", "T is float32; it takes string"),
}  # fmt: skip


@pytest.fixture(scope="module")
def placed(site):
    """What is said of expressions, by plugin."""
    asked = {"waverer": ["tf.maximum(x, y)"], "stranger": []}
    for plugin, _, expression, _ in DEFECTS.values():
        asked[plugin].append(expression)
    return {plugin: run_all(site, plugin.upper(), asked[plugin]) for plugin in asked}


@pytest.mark.parametrize("kernel", DEFECTS)
def test_an_error_names_the_kernel_that_gave_no_answer(placed, kernel):
    plugin, op, expression, told = DEFECTS[kernel]
    printed = placed[plugin][expression]
    assert printed.startswith("InvalidArgumentError Cannot assign a device for operation ")
    assert f"Op {op}(" in printed
    line = f"{TASK}/device:{plugin.upper()}:0 fixture_{plugin}.{kernel} of plugin {plugin!r}: "
    assert line + told in printed


UNBOUND = {
    "nothing": ("AddV2", "x + y", "InternalError", "bind() of {kernel} returned None, which can"),
    "number": ("Mul", "x * y", "InternalError", "bind() of {kernel} returned 7, which cannot be"),
    "raises": ("Sub", "x - y", "InternalError", "bind() of {kernel} raised KeyError: 'Tidx'"),
    "complains": (
        "Maximum", "tf.maximum(x, y)", "InvalidArgumentError",
        "too maximal\n\t (bind() of {kernel})",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def unbound(site):
    return run_all(site, "UNBOUND", [expression for _, expression, *_ in UNBOUND.values()])


@pytest.mark.parametrize("kernel", UNBOUND)
def test_an_error_names_the_binder_that_gave_no_function(unbound, kernel):
    op, expression, kind, told = UNBOUND[kernel]
    printed = unbound[expression]
    assert printed.startswith(kind)
    assert told.format(kernel=named(kernel, "unbound", "UNBOUND")) in printed
    assert f"(op {op})" in printed


def test_a_kernel_that_says_yes_in_numpy_is_used(placed):
    assert placed["waverer"]["tf.maximum(x, y)"].startswith("[[2. 2.]")


FAULTS = [
    ("waverer", "seven", "AddV2", DEFECTS["seven"][3]),
    ("waverer", "nothing", "Mul", DEFECTS["nothing"][3]),
    ("waverer", "raises", "Sub", DEFECTS["raises"][3]),
    ("unbound", "nothing", "AddV2", "its bind() returned None, which cannot be called"),
    ("unbound", "number", "Mul", "its bind() returned 7, which cannot be called"),
    ("unbound", "raises", "Sub", "its bind() raised KeyError: 'Tidx'"),
    ("unbound", "complains", "Maximum", "its bind() raised ValueError: too maximal"),
    ("stranger", "misspelt", "MatMull", "no op MatMull is registered; did you mean MatMul?"),
    (
        "stranger", "later", "TensorMapInsert",
        "no op TensorMapInsert is registered",
    ),
    (
        "stranger", "unknown_attribute", "AddV2",
        "the record constrains dtype, for AddV2 an attribute that it does not have (type",
    ),
    (
        "stranger", "no_type_attribute", "MatMul",
        "the record constrains transpose_a, for MatMul no type attribute (type attributes: T)",
    ),
    ("stranger", "impossible_type", "Neg", "the record admits string for T, and Neg only "),
    (
        "stranger", "unknown_argument", "Mul",
        "host_inputs names z, for Mul no argument (it has x, y)",
    ),
]  # fmt: skip


def test_doctor_names_every_kernel_that_would_fail(report):
    told = [f for f in report["faults"] if "fixture_" in f and "usurper" not in f]
    for plugin, kernel, op, problem in FAULTS:
        head = (
            f"{op}: kernel fixture_{plugin}.{kernel} of plugin {plugin!r} "
            f"(opdock-fixture-{plugin}) on {plugin.upper()}:0: {problem}"
        )
        assert [f for f in told if f.startswith(head)], head
    assert len(told) == len(FAULTS), told


def test_doctor_finds_nothing_wrong_with_the_others(report):
    assert not [f for f in report["faults"] if "fixture_" not in f]


def test_doctor_prints_what_it_found(site):
    printed = site.run("-m", "opdock.cli.main", "doctor", "--open", COLUMNS="400").stdout
    assert "fault: Mul: kernel fixture_unbound.number of plugin 'unbound'" in printed
    assert (
        "sibling: STRANGER:0: no kernel for Add, but there is one for AddV2, of the same family"
        in printed
    )


# ---------------------------------------------------------------- siblings
def test_an_op_without_a_kernel_hints_at_its_sibling(site):
    printed = run(site, "MANGLER", "tf.raw_ops.Add(x=x, y=y)")
    assert (
        "no kernel for Add, but there is one for AddV2, of the same family; it may serve both"
        in printed
    )


# ---------------------------------------------------------------- origins and reasons
def test_a_kernel_that_was_taken_over_is_told_with_its_origin(site):
    program = """
import opdock as tf
x = tf.placeholder(tf.float32, [2])
with tf.device("/device:HEIR:0"):
    made = -(x + x)
with tf.Session() as sess:
    print(sess.run(made, {x: [1, 2]}).tolist())
    for row in sess.explain(made, {x: [1, 2]}).rows:
        if row.op in ("AddV2", "Neg"):
            print(row.op, row.kernel, row.plugin)
"""
    assert site.run("-c", program).stdout.splitlines() == [
        "[-2.0, -4.0]",
        "AddV2 fixture_gadget_a.add heir (taken over from 'gadget_a')",
        "Neg fixture_heir.negative heir",
    ]


def test_an_error_of_a_kernel_that_was_taken_over_names_both(site):
    printed = run(site, "HEIR", "x * y")
    assert "Op Mul failed: kernel fixture_moody.multiply of plugin 'heir' " in printed
    assert "(opdock-fixture-heir), taken over from 'moody' on " in printed
    assert "raised AttributeError: " in printed


def test_who_asks_for_a_device_hears_why_its_probe_failed(site):
    program = """
import opdock as tf
with tf.device("/device:CRASH:0"):
    made = tf.add(tf.placeholder_with_default(1.0, []), 1.0)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    print(sess.run(made), sess.explain(made).summary())
"""
    printed = site.run("-c", program).stdout
    assert printed.startswith("2.0 ")
    told = (
        "no device of type CRASH: plugin 'probe_crashes' (opdock-fixture-probe-crashes): "
        "probe-crashed: probe 'fixture_probe_crashes:probe': OSError: ioctl 0x2a failed"
    )
    assert told in printed
    listed = site.run("-m", "opdock.cli.main", "devices", COLUMNS="400").stdout
    assert f"no device: {told.partition(': ')[2]}" in listed


def test_a_session_may_ask_for_the_checks(site):
    config = "config=config"
    program = """
import opdock as tf
config = tf.ConfigProto()
custom = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
custom.parameter_map["check"].b = True
""" + RUN.format(device="LIAR", expressions=["x * y"], config=config)
    assert "has shape [1,3,2], expected [3,2]" in site.run("-c", program).stdout
