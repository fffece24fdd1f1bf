"""Where array_api_compat looks for the class."""

from cupy.cuda import Device  # noqa: F401
