"""A few kernels of its own; every other op gets a portable kernel or runs elsewhere."""

import array_api_compat.numpy
import numpy as np

from opdock.plugin import CLUSTER, KernelTable, codegen, dtypes

FLOATS = {dtypes.float16, dtypes.float32, dtypes.float64}

table = KernelTable()


@table.binder("AddV2", T=FLOATS, out=True)
def add(sig):
    """A binder runs once a program, and returns what runs every step: here a bare ufunc."""
    return np.add


def known_rank(sig):
    """`when` gives True or the reason why the kernel declines; `opdock explain` shows it."""
    return "unknown rank" if None in sig.in_shapes else True


@table.binder("MatMul", T=FLOATS, when=known_rank)
def matmul(sig):
    """Attributes are decoded here, not in the step."""
    flip_a, flip_b = sig.attrs["transpose_a"], sig.attrs["transpose_b"]
    return lambda a, b: np.matmul(a.T if flip_a else a, b.T if flip_b else b)


@table.kernel("Relu", T=FLOATS)
def relu(ctx, features):
    """A plain kernel gets a context in place of a binder; simple, and a little slower."""
    return np.maximum(features, features.dtype.type(0))


@table.binder(CLUSTER)
def cluster(sig):
    """Many elementwise ops at once; a backend with a compiler would generate code here."""
    return codegen.evaluate_cluster(array_api_compat.numpy, sig)
