"""A complete backend: two devices that compute with NumPy in memory of their own."""

from opdock.plugin import BackendSpec, DeviceAttributes, Probe, hookimpl


@hookimpl
def opdock_backends():
    """Everything heavy stands behind a dotted name and is imported when a device opens."""
    yield BackendSpec(
        name="echo",
        device_type="ECHO",  # its devices are /device:ECHO:0 and /device:ECHO:1
        own_type="ECHO",
        api=(1, 0),
        priority=-10,  # after the CPU: an example computes only what is asked of it
        probe="opdock_echo:probe",
        device="opdock_echo.device:EchoDevice",
        kernels=("opdock_echo.kernels:table",),
    )


def probe():
    """What there is on this machine; a real backend asks its driver, and says why it finds none."""
    return Probe(devices=[DeviceAttributes(index=i, description=f"echo {i}") for i in range(2)])
