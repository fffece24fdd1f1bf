"""Which OpenCL devices there are, and what is missing to use them."""

from __future__ import annotations

import importlib.util

from opdock.plugin import Probe


def probe() -> Probe:
    """The reason why none can be used yet: PyOpenCL, a driver, or the kernels of this release."""
    if importlib.util.find_spec("pyopencl") is None:
        return Probe(reason="PyOpenCL is not installed")
    import pyopencl as cl

    try:
        names = [d.name.strip() for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error as e:
        return Probe(reason=f"no OpenCL driver is installed ({e})", installable=False)
    if not names:
        return Probe(reason="the installed OpenCL drivers find no device", installable=False)
    told = ", ".join(names)
    reason = f"found {told}, but this release of opdock-opencl has no kernels"
    return Probe(reason=reason, installable=False)
