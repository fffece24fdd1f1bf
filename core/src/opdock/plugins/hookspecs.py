"""The hooks: what core asks of plugins. Called when plugins load and programs are prepared.

No hook is called per op or per step. A hook implementation may take fewer arguments than its
specification, so new arguments break no plugin. Errors stay with the plugin that raised them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pluggy

if TYPE_CHECKING:
    from opdock.compiler.views.node import NodeView
    from opdock.graph.nodes.registry import OpSpec
    from opdock.kernels.select.table import KernelTable
    from opdock.plugins.clusters import ClusterEngineSpec
    from opdock.plugins.records import (
        BackendSpec,
        Candidate,
        CopyRoute,
        DeviceAttributes,
        FusionPattern,
        GraphPass,
        GraphTransform,
        Requirement,
        ToleranceRow,
    )

PROJECT: Final = "opdock"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class BackendHooks:
    """Hooks that bring devices and what runs on them."""

    @hookspec
    def opdock_backends(self) -> Iterable[BackendSpec]:
        """Backends that this plugin brings.

        The module must be light: nothing but `opdock.plugin` and the standard library. Whatever is
        heavy stands behind the dotted names.

        Yields:
            One `BackendSpec` a backend. A plugin of the group `opdock.backends` yields one that is
            named like its entry point.

        Example:
            from opdock.plugin import API_VERSION, BackendSpec, hookimpl

            @hookimpl
            def opdock_backends():
                yield BackendSpec(
                    name="acme", device_type="GPU", own_type="ACME", api=(1, 0), priority=150,
                    probe="opdock_acme.probe:probe", device="opdock_acme.device:AcmeDevice",
                    kernels=("opdock_acme.kernels.math:table",),
                    install_hint='pip install "opdock-acme[driver]"',
                )
        """
        raise NotImplementedError

    @hookspec
    def opdock_kernels(self, backend: str, device: DeviceAttributes) -> Iterable[KernelTable | str]:
        """Kernels for a backend, be it the plugin's own or somebody else's.

        Called once a device, when it opens, and again when plugins are registered or unregistered.
        Of the plugin's own backend, or of one that admits the plugin, a kernel with a higher
        priority wins; so do kernels for ops that the plugin brings. For others the tables come
        last, whatever their priorities: they compute what nothing else does there.

        Args:
            backend: the backend's name.
            device: what the probe found out about the device.

        Yields:
            A `KernelTable`, or "pkg.mod:table", which is imported now.

        Example:
            @hookimpl
            def opdock_kernels(backend, device):
                if backend == "acme" and "tensor_cores" in device.features:
                    yield "acme_fast.kernels:table"
        """
        raise NotImplementedError

    @hookspec
    def opdock_fusions(self, backend: str, device: DeviceAttributes) -> Iterable[FusionPattern]:
        """Fusion patterns for a backend. Called once a device, when it opens.

        They count for the plugin's own backend, and for one that admits the plugin.

        Args:
            backend: the backend's name.
            device: what the probe found out about the device.

        Yields:
            One `FusionPattern` each. The kernel of its `op` comes through `opdock_kernels` or the
            backend's own tables.

        Example:
            @hookimpl
            def opdock_fusions(backend, device):
                if backend == "acme":
                    yield FusionPattern(
                        name="bias_relu", op="acme>BiasRelu", benefit=2,
                        pattern=P("Relu", P("BiasAdd", "x", "b")),
                    )
        """
        raise NotImplementedError

    @hookspec
    def opdock_copy_routes(self) -> Iterable[CopyRoute]:
        """Direct ways between the memories of two device types.

        Without them a copy goes through host memory, which always works.

        Yields:
            One `CopyRoute` a direction.

        Example:
            @hookimpl
            def opdock_copy_routes():
                def peer(buffer, src_device, dst_device):
                    return dst_device.from_dlpack(buffer)

                yield CopyRoute(src="ACME", dst="CUDA", cost=0.3, copy=peer)
        """
        raise NotImplementedError


class GraphHooks:
    """Hooks that extend what graphs can say and how they are compiled."""

    @hookspec
    def opdock_ops(self) -> Iterable[OpSpec]:
        """Op types that this plugin brings.

        Yields:
            What `opdock.plugin.define_op` returned, with a shape function attached, and with
            `Traits` declared where the op has state, effects or aliases. Use a prefix
            ("acme>Gelu") unless graphs in the world use the plain name.

        Example:
            gelu_op = define_op("acme>Gelu", "x: T -> y: T", attrs="T: {float, double}")

            @gelu_op.shape
            def _(sig):
                return sig.shapes[0]

            @hookimpl
            def opdock_ops():
                yield gelu_op
        """
        raise NotImplementedError

    @hookspec
    def opdock_graph_passes(self) -> Iterable[GraphPass]:
        """Rewrites of the compiler's graph.

        Yields:
            One `GraphPass` each, with the stage at which it runs. Its function gets a `GraphView`.

        Example:
            @hookimpl
            def opdock_graph_passes():
                def drop_checks(graph):
                    for node in graph:
                        if node.op == "CheckNumerics":
                            graph.replace(node, node.inputs[0])

                yield GraphPass(
                    name="acme_drop_checks", stage="before_place", run=drop_checks, default=False
                )
        """
        raise NotImplementedError

    @hookspec
    def opdock_graph_transforms(self) -> Iterable[GraphTransform]:
        """Rewrites of GraphDefs for `opdock transform-graph` and `opdock.transforms`.

        Yields:
            One `GraphTransform` each; the keyword-only arguments of its function are its options.

        Example:
            from opdock.transforms import Editor

            def acme_mark(graph_def, context, *, op: str, mark: int = 1):
                editor = Editor(graph_def, context.ends)
                for node in editor:
                    if node.op == op:
                        node.attr["_acme_mark"].i = mark
                return editor.result()

            @hookimpl
            def opdock_graph_transforms():
                yield GraphTransform(name="acme_mark", run=acme_mark)
        """
        raise NotImplementedError

    @hookspec(firstresult=True)
    def opdock_place_node(
        self, node: NodeView, candidates: Sequence[Candidate], config: Any
    ) -> str | None:
        """Chooses the device of a node that no device scope pins down.

        Called when a program is prepared, once a colocation group, unless the value of a variable
        of the group is on a device already. The first plugin that answers decides; None leaves the
        choice to the next and at last to core.

        Args:
            node: the node, a `NodeView`; of a group the first that computes.
            candidates: devices that can take it, core's own choice first. Lost devices are not
                among them, nor kernels that gave up on the node.
            config: the session's ConfigProto, a copy.

        Returns:
            The name of one of the candidates' devices, or None.

        Example:
            @hookimpl
            def opdock_place_node(node, candidates, config):
                if node.op == "Sort":  # the accelerator is slow at this
                    return next((c.device for c in candidates if "CPU" in c.device), None)
        """
        raise NotImplementedError


class ClusterHooks:
    """Hooks that connect processes."""

    @hookspec
    def opdock_cluster_engines(self) -> Iterable[ClusterEngineSpec]:
        """Engines that bring what tasks of a cluster ask of each other from process to process.

        Yields:
            One `ClusterEngineSpec` an engine.

        Example:
            from opdock.plugin import ClusterEngineSpec, hookimpl

            @hookimpl
            def opdock_cluster_engines():
                yield ClusterEngineSpec(name="acme", engine="acme_cluster.engine:open_engine")
        """
        raise NotImplementedError


class ConformanceHooks:
    """Hooks that the conformance suite asks."""

    @hookspec
    def opdock_requirements(self, backend: str) -> Iterable[Requirement | ToleranceRow]:
        """What a backend does not do, or does less exactly, each with a reason.

        Args:
            backend: the name of the backend under test.

        Yields:
            `Requirement` and `ToleranceRow` records; the report shows all of them.

        Example:
            @hookimpl
            def opdock_requirements(backend):
                if backend == "acme":
                    yield Requirement(name="float64", status="unsupported", reason="no fp64 unit")
                    yield ToleranceRow(op="Exp", dtype="float32", rtol=1e-4, atol=1e-5,
                                       reason="table look-up with 14 bits")
        """
        raise NotImplementedError

    @hookspec
    def opdock_samples(self) -> Iterable[str]:
        """Modules with samples and references for this plugin's own ops.

        Yields:
            Names of modules that use `opdock.testing.authoring`; only the conformance suite
            imports them.

        Example:
            @hookimpl
            def opdock_samples():
                yield "acme_ops.samples"
        """
        raise NotImplementedError


GROUPS: Final = (BackendHooks, GraphHooks, ClusterHooks, ConformanceHooks)
"""The specifications by subject; the manager adds an instance of each."""
