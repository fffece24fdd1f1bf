"""The manager on plugins registered in this process: loading, probing, opening, hooks."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest

from opdock.kernels.select.signature import NodeSig
from opdock.plugin import (
    Candidate,
    CopyRoute,
    FusionPattern,
    GraphPass,
    KernelTable,
    P,
    PluginError,
    Probe,
    Requirement,
    hookimpl,
)
from opdock.plugins import probing
from opdock.plugins.installed import announced
from tests.core.plugins.made import Device, counter, make


def nothing():
    return ()


def states(manager):
    return {p.name: (p.state, p.kind) for p in manager.status()}


def test_states_follow_use(manager):
    module = make()
    assert manager.register(module).state == "loaded"
    (probed,) = manager.devices()
    assert states(manager)[module.__name__] == ("probed", "")
    opened = manager.open(probed)
    assert isinstance(opened.device, Device)
    assert states(manager)[module.__name__] == ("open", "")
    assert manager.open(probed) is opened
    manager.close()
    assert states(manager)[module.__name__] == ("probed", "")
    assert manager.open(probed) is not opened


def test_registration_asks_nothing_of_the_installed(manager, monkeypatch):
    monkeypatch.setattr("opdock.plugins.discovery.announced", lambda *groups: 1 / 0)
    assert manager.register(make()).state == "loaded"


def test_what_is_installed_is_read_once(manager, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "opdock.plugins.discovery.announced",
        lambda *groups: asked.append(1) or announced(*groups),
    )
    assert {"cpu", "echo"} <= {status.name for status in manager.status()}
    manager.load()
    assert len(asked) == 1


def test_registering_again_replaces(manager):
    module = make()
    manager.register(module)
    manager.register(module)
    other = make()
    manager.unregister(module.__name__)
    manager.register(other, name=module.__name__)
    manager.register(make(), name=module.__name__)
    assert len(manager.devices()) == 1
    with pytest.raises(KeyError):
        manager.unregister("nobody")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"api": (1, 3)}, "api-too-new"),
        ({"api": (2, 0)}, "api-too-new"),
        ({"api": (0, 3)}, "api-too-old"),
        ({"api": "1.0"}, "wrong-type"),
        ({"surprise": 1}, "wrong-type"),
        ({"hooks": {"opdock_kernel": nothing}}, "unknown-hook"),
        ({"hooks": {"opdock_kernels": lambda backend, devise: []}}, "unknown-hook"),
        ({"hooks": {"opdock_copy_routes": lambda: [3]}}, "wrong-type"),
        ({"hooks": {"opdock_copy_routes": lambda: 3}}, "wrong-type"),
        ({"hooks": {"opdock_ops": lambda: {}["x"]}}, "import-error"),
    ],
)
def test_what_is_broken_is_refused_whole(manager, fields, kind):
    with pytest.raises(PluginError) as caught:
        manager.register(make(**fields))
    assert caught.value.kind == kind
    assert manager.devices() == []
    assert list(manager.routes()) == []


def test_an_object_without_hooks_is_no_plugin(manager):
    module = types.ModuleType("bare")
    module.opdock_backends = list
    with pytest.raises(PluginError, match="opdock_backends lack @hookimpl"):
        manager.register(module)
    with pytest.raises(PluginError, match="implements no hook"):
        manager.register(types.SimpleNamespace(), name="nothing")
    with pytest.raises(PluginError, match="a module or an object"):
        manager.register(type("Plugin", (), {}))


def test_an_object_with_methods_is_a_plugin(manager):
    class Plugin:
        @hookimpl
        def opdock_samples(self):
            yield "some.samples"

    manager.register(Plugin())
    assert manager.sample_modules() == [("Plugin", "some.samples")]


def test_an_api_declared_by_the_module_counts(manager):
    module = make()
    module.OPDOCK_API = (1, 7)
    with pytest.raises(PluginError, match=r"written for plugin API 1\.7"):
        manager.register(module)


def test_names_and_own_types_are_unique(manager):
    manager.register(make())
    with pytest.raises(PluginError, match="the name 'made' already"):
        manager.register(make(own_type="OTHER"))
    with pytest.raises(PluginError, match="the own_type 'MADE' already"):
        manager.register(make(name="other"))
    manager.register(make(name="other", own_type="OTHER"))
    assert len(manager.devices()) == 2


def test_an_own_type_is_that_of_the_backend_of_its_name(manager):
    """Whoever came first; a backend under another name keeps what nobody else is called by."""
    early = make(name="early", device_type="MADE")
    manager.register(early)
    assert [d.spec.name for d in manager.devices()] == ["early"]
    manager.register(make())
    assert states(manager)[early.__name__] == ("quarantined", "duplicate")
    assert [d.spec.name for d in manager.devices()] == ["made"]


def test_a_type_that_two_share_is_nobodys(manager):
    first = make(name="first", own_type="COMMON", device_type="COMMON")
    manager.register(first)
    for name in ("left", "right"):
        manager.register(make(name=name, own_type=name.upper(), device_type="COMMON"))
    assert states(manager)[first.__name__] == ("quarantined", "duplicate")
    assert [(d.spec.name, d.outside) for d in manager.devices()] == [("left", ""), ("right", "")]
    # But who is called by its name may own it, and then the others are guests.
    manager.register(make(name="common", own_type="COMMON", device_type="COMMON"))
    found = {d.spec.name: d.outside for d in manager.devices()}
    assert not found["common"]
    assert "the type COMMON belongs to backend 'common'" in found["left"]


def test_a_guest_joins_the_pool_that_admits_it(manager, monkeypatch):
    guest = make(name="guest", own_type="GUEST", device_type="MADE")
    manager.register(make(), name="host")
    manager.register(guest, name="lodger")
    assert [bool(d.outside) for d in manager.devices()] == [False, True]
    monkeypatch.setenv("OPDOCK_ADMIT", "someone, lodger")
    assert not any(d.outside for d in manager.devices())
    monkeypatch.delenv("OPDOCK_ADMIT")
    manager.register(make(admits=["lodger"]), name="host")
    assert not any(d.outside for d in manager.devices())


@pytest.mark.parametrize(
    ("probe", "kind", "told"),
    [
        (lambda: 1 / 0, "probe-crashed", "ZeroDivisionError"),
        (lambda: sys.exit(3), "probe-crashed", "SystemExit"),
        (lambda: [1], "wrong-type", "must return a Probe"),
        (lambda: threading.Event().wait(), "probe-timeout", "no answer in 0.2 s"),
    ],
)
def test_a_probe_that_fails_costs_only_its_backend(manager, monkeypatch, probe, kind, told):
    manager.register(make())
    assert len(manager.devices()) == 1  # before the limit is so short that it, too, may miss it
    monkeypatch.setenv("OPDOCK_PROBE_TIMEOUT", "0.2" if kind == "probe-timeout" else "600")
    broken = make(probe, name="broken", device_type="BROKEN", own_type="BROKEN")
    manager.register(broken)
    assert [d.spec.name for d in manager.devices()] == ["made"]
    assert states(manager)[broken.__name__] == ("quarantined", kind)
    assert told in manager.why_unavailable("BROKEN")
    assert manager.why_unavailable("MADE") == ""


def test_hanging_probes_hang_together(manager, monkeypatch):
    """However many hang, the waits for them add up to one time limit."""
    waits = []

    class Counted(threading.Thread):
        def join(self, timeout=None):
            waits.append(timeout)
            super().join(timeout)

    monkeypatch.setattr(probing.threading, "Thread", Counted)
    monkeypatch.setenv("OPDOCK_PROBE_TIMEOUT", "0.3")
    for i in range(4):
        hang = threading.Event().wait
        manager.register(make(lambda hang=hang: hang(), name=f"h{i}", own_type=f"H{i}"))
    assert manager.devices() == []
    assert sum(waits) < 2 * 0.3


def test_a_probe_that_goes_on_is_waited_for_however_slowly():
    """Importing a library takes as long as a busy machine lets it; hanging takes no processor."""
    slow, hanging = probing.Patience(10.0, 0.0), probing.Patience(10.0, 0.0)
    assert not any(slow.is_over(9.0 * i, 0.2 * i) for i in range(50))
    assert not any(hanging.is_over(t, 0.02) for t in (1.0, 5.0, 9.9))
    assert hanging.is_over(10.1, 0.02)


def test_a_probe_that_turns_in_circles_has_its_share_and_no_more(manager, monkeypatch):
    monkeypatch.setenv("OPDOCK_PROBE_TIMEOUT", "0.2")
    ended = threading.Event()

    def turn():
        while not ended.is_set():
            pass

    manager.register(make(turn, name="circles", own_type="CIRCLES"))
    try:
        assert manager.devices() == []
        assert "no answer" in manager.why_unavailable("CIRCLES")
    finally:
        ended.set()


def test_a_bad_time_limit_is_told(manager, monkeypatch, caplog):
    monkeypatch.setenv("OPDOCK_PROBE_TIMEOUT", "soon")
    manager.register(make())
    with caplog.at_level(logging.WARNING, "opdock.plugins"):
        assert len(manager.devices()) == 1
    assert "OPDOCK_PROBE_TIMEOUT='soon'" in caplog.text


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("OPDOCK_ADMIT", "eccho", "OPDOCK_ADMIT names 'eccho', and there is no such plugin"),
        ("OPDOCK_PLUGINS", "eccho", "OPDOCK_PLUGINS names 'eccho', and there is no such"),
        ("OPDOCK_DISABLE", "opencll, echo", "OPDOCK_DISABLE names 'opencll', and there is no such"),
    ],
)
def test_a_name_that_no_plugin_has_is_told_once(
    manager, monkeypatch, caplog, variable, value, told
):
    monkeypatch.setenv(variable, value)
    manager.register(make(), "echo")
    manager.register(make(name="other", own_type="OTHER"), "opencl")
    with caplog.at_level(logging.WARNING, "opdock.plugins"):
        manager.devices()
        manager.load()
    (line,) = [r.getMessage() for r in caplog.records if variable in r.getMessage()]
    meant = "opencl" if "opencll" in value else "echo"
    assert told in line
    assert "(there are: echo, opencl)" in line
    assert line.endswith(f"did you mean {meant!r}?")
    assert manager.unknown() == [line]


def test_what_is_not_installed_may_be_disabled(manager, monkeypatch, caplog):
    """One setting serves machines with different plugins."""
    monkeypatch.setenv("OPDOCK_DISABLE", "something-else")
    monkeypatch.setenv("OPDOCK_ADMIT", "echo")
    manager.register(make(), "echo")
    with caplog.at_level(logging.WARNING, "opdock.plugins"):
        manager.load()
    assert not caplog.records
    assert manager.unknown() == []


def test_no_device_has_a_reason(manager):
    manager.register(
        make(lambda: Probe(reason="gadgetlib is not installed"), install_hint="pip install gadget")
    )
    assert manager.devices() == []
    why = manager.why_unavailable("MADE")
    assert "unavailable: gadgetlib is not installed (pip install gadget)" in why
    assert "no installed plugin serves devices of type XYZ" in manager.why_unavailable("XYZ")


def test_a_hint_that_would_not_help_is_not_given(manager):
    probe = Probe(reason="no driver", installable=False)
    manager.register(make(lambda: probe, install_hint="pip install gadget"))
    manager.probe()
    assert "pip install gadget" not in manager.why_unavailable("MADE")


@pytest.mark.parametrize("admitted", [True, False])
def test_kernels_come_from_table_packs_and_namespace(manager, admitted):
    own, pack = KernelTable(), KernelTable()
    own.binder("Relu")(lambda sig: "own")
    pack.binder("Relu", priority=5)(lambda sig: "pack")

    def opdock_kernels(backend, device):
        return [pack] if backend == "made" and device.index == 0 else []

    manager.register(make(table=lambda device: own, admits={"packer"} if admitted else ()))
    packer = types.SimpleNamespace(opdock_kernels=hookimpl(opdock_kernels))
    manager.register(packer, name="packer")
    opened = manager.open(manager.devices()[0])
    best = opened.select(NodeSig("Relu"))
    if admitted:
        assert best.chosen.kernel.bind(None) == "pack"
        assert best.chosen.plugin == "packer"
        assert best.alternatives[0].plugin.startswith("made_")
    else:
        assert best.chosen.kernel.bind(None) == "own"
        assert [e.plugin for e in best.alternatives] == ["packer"]
        assert "does not admit 'packer'" in opened.notes[0]


def test_a_pack_that_fails_is_expelled_and_the_device_opens(manager):
    def opdock_kernels(backend):
        yield "no_such_module_anywhere:table"

    manager.register(make())
    pack = types.SimpleNamespace(opdock_kernels=hookimpl(opdock_kernels))
    manager.register(pack, name="pack")
    manager.open(manager.devices()[0])
    assert states(manager)["pack"] == ("quarantined", "import-error")


def test_fusions_are_ordered(manager):
    def opdock_fusions(backend, device):
        for name, benefit in (("b", 1), ("a", 1), ("c", 2)):
            yield FusionPattern(name=name, pattern=P("Relu", "x"), op="m>Relu", benefit=benefit)

    manager.register(make(hooks={"opdock_fusions": opdock_fusions}))
    opened = manager.open(manager.devices()[0])
    assert [f.name for f in opened.fusions] == ["c", "a", "b"]


def test_other_records(manager):
    route = CopyRoute(src="MADE", dst="MADE", copy=print)
    passes = [
        GraphPass(name=n, stage="after_place", run=print, position=p)
        for n, p in (("z", 1), ("b", 2), ("a", 2))
    ]
    needs = Requirement(name="float64", status="unsupported", reason="none")
    made = manager.register(
        make(
            hooks={
                "opdock_copy_routes": lambda: [route],
                "opdock_graph_passes": lambda: passes,
                "opdock_requirements": lambda backend: [needs] if backend == "made" else [],
            }
        )
    )
    assert list(manager.routes()) == [route]
    assert [(o, p.name) for o, p in manager.graph_passes()] == [(made.name, n) for n in "zab"]
    assert manager.requirements("made") == [needs]
    assert manager.requirements("other") == []


def test_the_first_plugin_that_answers_places_the_node(manager, caplog):
    assert manager.place_node_hook is None
    answers = {"node": None}
    plugin = types.SimpleNamespace(
        opdock_place_node=hookimpl(lambda node, candidates: answers[node])
    )
    manager.register(plugin, name="placer")
    place = manager.place_node_hook
    candidates = [Candidate(device="/device:A:0"), Candidate(device="/device:B:0")]
    assert place("node", candidates, None) is None
    answers["node"] = "/device:B:0"
    assert place("node", candidates, None) == ("/device:B:0", "placer")
    answers["node"] = "/device:C:0"
    with caplog.at_level(logging.DEBUG, "opdock.plugins"):
        assert place("node", candidates, None) is None
        assert place("unknown", candidates, None) is None
    # A plugin may fail at every node: the first time is told, the others only to who asks.
    (first, second) = caplog.records
    assert first.levelno == logging.WARNING and "is no candidate" in first.getMessage()
    assert second.levelno == logging.DEBUG
    assert "plugin 'placer' failed on unknown" in second.getMessage()


def test_hooks_are_listed(manager):
    status = manager.register(make(hooks={"opdock_samples": nothing}))
    assert status.hooks == ("opdock_backends", "opdock_samples")
    assert (status.group, status.distribution) == ("registered", "")


def test_hints_for_hardware_without_plugin(manager, monkeypatch):
    from opdock.plugins import hints

    seen = hints.Hint(lambda: True, "gadget", "get opdock-gadget")
    unseen = hints.Hint(lambda: False, "other", "get opdock-other")
    assert hints.missing_plugins([], [seen, unseen]) == ["get opdock-gadget"]
    assert hints.missing_plugins(["gadget"], [seen, unseen]) == []


# ---------------------------------------------------------------- routes, passes, requirements
def from_the_left(buffer, src_device, dst_device):
    return buffer


def from_the_right(buffer, src_device, dst_device):
    return buffer


def passing(name, **fields):
    """A module with one graph pass and no backend."""

    @hookimpl
    def opdock_graph_passes():
        yield GraphPass(name=name, stage="before_place", run=print)

    module = types.ModuleType(f"made_{next(counter)}")
    module.opdock_graph_passes = opdock_graph_passes
    return module


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_of_two_routes_the_destinations_counts(manager, order):
    """Whoever came first, and whatever they cost."""
    for name in order:
        cost, copy = (0.1, from_the_left) if name == "left" else (0.9, from_the_right)
        route = CopyRoute(src="LEFT", dst="RIGHT", cost=cost, copy=copy)
        module = make(
            name=name, device_type=name.upper(), own_type=name.upper(),
            hooks={"opdock_copy_routes": lambda route=route: [route]},
        )  # fmt: skip
        manager.register(module, name)
    (route,) = manager.routes()
    assert route.copy is from_the_right
    assert manager.disputed() == [
        "the copy route LEFT to RIGHT of 'left' (left) is left out: 'right' (right) brings one"
    ]


def test_a_route_between_strangers_needs_leave(manager, monkeypatch):
    manager.register(make(name="owner", device_type="OWNER", own_type="OWNER"), "owner")
    route = CopyRoute(src="OWNER", dst="OWNER", copy=from_the_left)
    lost = CopyRoute(src="NOBODY", dst="NOWHERE", copy=from_the_left)
    module = types.ModuleType(f"made_{next(counter)}")
    module.opdock_copy_routes = hookimpl(specname="opdock_copy_routes")(lambda: [route, lost])
    manager.register(module, "stranger")
    assert list(manager.routes()) == [lost]
    (told,) = manager.disputed()
    assert (
        "OWNER to OWNER of 'stranger' (stranger) is left out: it is not admitted by 'owner'" in told
    )
    monkeypatch.setenv("OPDOCK_ADMIT", "stranger")
    manager.register(module, "stranger")
    assert list(manager.routes()) == [route, lost]
    assert manager.disputed() == []


def test_a_pass_belongs_to_the_plugin_that_its_name_begins_with(manager):
    manager.register(passing("acme_tidy"), "early")
    with pytest.raises(PluginError, match="'early' .* has a graph pass 'acme_tidy' already"):
        manager.register(passing("acme_tidy"), "late")
    manager.register(passing("acme_tidy"), "acme")
    assert [plugin for plugin, _ in manager.graph_passes()] == ["acme"]
    (early,) = (p for p in manager.status() if p.name == "early")
    assert (early.state, early.kind) == ("quarantined", "duplicate")
    assert early.reason == "'acme' (acme) has a graph pass 'acme_tidy' already"


def test_the_names_of_cores_own_passes_are_taken(manager):
    def opdock_fusions(backend):
        yield FusionPattern(name="cluster", pattern=P("Relu", "x"), op="pack>Relu")

    with pytest.raises(PluginError, match="core has a pass 'algebra' of its own"):
        manager.register(passing("algebra"), "algebra")
    manager.register(make())
    pack = types.SimpleNamespace(opdock_fusions=hookimpl(opdock_fusions))
    manager.register(pack, "pack")
    assert not manager.open(manager.devices()[0]).fusions
    assert not manager.graph_passes()
    (status,) = (p for p in manager.status() if p.name == "pack")
    assert (status.state, status.kind) == ("quarantined", "duplicate")
    assert "core has a pass 'cluster' of its own, which a fusion of that name" in status.reason


def test_hooks_are_called_once(manager):
    module, calls = make(), []
    plain = module.opdock_backends
    module.opdock_backends = hookimpl(lambda: calls.append(1) or plain())
    assert (manager.register(module).state, calls) == ("loaded", [1])
