"""opdock's OpenCL backend: any vendor's devices through PyOpenCL, imported by the probe."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.plugin import BackendSpec, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend; a GPU's own vendor backend comes before it."""
    yield BackendSpec(
        name="opencl",
        device_type="GPU",
        own_type="OPENCL",
        api=(1, 0),
        priority=100,
        probe="opdock_opencl.probe:probe",
        device="opdock_opencl.device:OpenCLDevice",
        kernels=("opdock_ckernels.families:table_for",),
        fusions=("opdock_ckernels.families.fusion:patterns",),
        install_hint='pip install "opdock-opencl[pyopencl]", or [pocl] to run on the CPU',
    )
