"""oneDNN through its C interface: fast convolution, matrix products, pooling and normalization.

`library` finds it, `api` declares and calls it, `memory` and `primitive` wrap its objects; the
other modules make primitives for given shapes. Kernels for opdock's ops stand in `kernels`.
"""
