"""Kernels in the C that OpenCL C and CUDA C share: one text, run by every backend that has both."""
