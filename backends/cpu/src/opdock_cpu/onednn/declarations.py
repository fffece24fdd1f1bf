"""What is used of oneDNN's C interface, version 3: declarations and numbers of its enumerations."""

from __future__ import annotations

from typing import Final

__all__ = ["CDEF", "Alg", "Arg", "Flag", "Prop", "Query", "Scratch", "Type"]

# Every enumeration is an int and every object an opaque pointer in this interface.
_OBJECTS: Final = """
typedef struct {int major, minor, patch; const char *hash; unsigned cpu, gpu;} dnnl_version_t;
typedef int64_t dims_t[12];
typedef struct {int arg; void *memory;} dnnl_exec_arg_t;
const dnnl_version_t *dnnl_version(void);
void omp_set_num_threads(int);
int omp_get_max_threads(void);
int dnnl_engine_create(void **, int, size_t);
int dnnl_stream_create(void **, void *, unsigned);
int dnnl_stream_destroy(void *);
int dnnl_set_primitive_cache_capacity(int);
int dnnl_memory_desc_create_with_strides(void **, int, const int64_t *, int, const int64_t *);
int dnnl_memory_desc_create_with_tag(void **, int, const int64_t *, int, int);
int dnnl_memory_desc_clone(void **, const void *);
int dnnl_memory_desc_destroy(void *);
int dnnl_memory_desc_equal(const void *, const void *);
size_t dnnl_memory_desc_get_size(const void *);
int dnnl_memory_create(void **, const void *, void *, void *);
int dnnl_memory_set_data_handle(void *, void *);
int dnnl_memory_destroy(void *);
int dnnl_primitive_create(void **, const void *);
int dnnl_primitive_execute(const void *, void *, int, const dnnl_exec_arg_t *);
int dnnl_primitive_destroy(void *);
int dnnl_primitive_desc_destroy(void *);
int dnnl_primitive_desc_query(const void *, int, int, void *);
const void *dnnl_primitive_desc_query_md(const void *, int, int);
int dnnl_primitive_attr_create(void **);
int dnnl_primitive_attr_destroy(void *);
int dnnl_primitive_attr_set_post_ops(void *, const void *);
int dnnl_primitive_attr_set_scales_mask(void *, int, int);
int dnnl_primitive_attr_set_scratchpad_mode(void *, int);
int dnnl_primitive_attr_set_zero_points_mask(void *, int, int);
int dnnl_post_ops_create(void **);
int dnnl_post_ops_destroy(void *);
int dnnl_post_ops_append_sum(void *, float, int32_t, int);
int dnnl_post_ops_append_eltwise(void *, int, float, float);
int dnnl_post_ops_append_binary(void *, int, const void *);
"""

# Each makes a primitive descriptor: (result, engine, ..., attributes).
_PRIMITIVES: Final = """
int dnnl_reorder_primitive_desc_create(void **, const void *, void *, const void *, void *,
    const void *);
int dnnl_convolution_forward_primitive_desc_create(void **, void *, int, int, const void *,
    const void *, const void *, const void *, const int64_t *, const int64_t *, const int64_t *,
    const int64_t *, const void *);
int dnnl_convolution_backward_data_primitive_desc_create(void **, void *, int, const void *,
    const void *, const void *, const int64_t *, const int64_t *, const int64_t *,
    const int64_t *, const void *, const void *);
int dnnl_convolution_backward_weights_primitive_desc_create(void **, void *, int, const void *,
    const void *, const void *, const void *, const int64_t *, const int64_t *, const int64_t *,
    const int64_t *, const void *, const void *);
int dnnl_matmul_primitive_desc_create(void **, void *, const void *, const void *, const void *,
    const void *, const void *);
int dnnl_pooling_forward_primitive_desc_create(void **, void *, int, int, const void *,
    const void *, const int64_t *, const int64_t *, const int64_t *, const int64_t *,
    const int64_t *, const void *);
int dnnl_pooling_backward_primitive_desc_create(void **, void *, int, const void *, const void *,
    const int64_t *, const int64_t *, const int64_t *, const int64_t *, const int64_t *,
    const void *, const void *);
int dnnl_batch_normalization_forward_primitive_desc_create(void **, void *, int, const void *,
    const void *, float, unsigned, const void *);
int dnnl_batch_normalization_backward_primitive_desc_create(void **, void *, int, const void *,
    const void *, const void *, float, unsigned, const void *, const void *);
int dnnl_softmax_forward_primitive_desc_create(void **, void *, int, int, const void *,
    const void *, int, const void *);
int dnnl_lrn_forward_primitive_desc_create(void **, void *, int, int, const void *, const void *,
    int64_t, float, float, float, const void *);
int dnnl_lrn_backward_primitive_desc_create(void **, void *, int, const void *, const void *,
    const void *, int64_t, float, float, float, const void *, const void *);
"""

CDEF: Final = _OBJECTS + _PRIMITIVES
"""The declarations as cffi reads them."""


class Type:
    """Element types."""

    F16, BF16, F32, S32, S8, U8, F64 = range(1, 8)


class Prop:
    """What a primitive is for."""

    TRAINING, INFERENCE, BACKWARD, BACKWARD_DATA = 64, 96, 128, 160


class Alg:
    """Algorithms."""

    CONV_DIRECT, CONV_AUTO = 0x1, 0x3
    RELU, TANH, ELU = 0x20, 0x21, 0x22
    LINEAR, LOGISTIC, CLIP_V2 = 0x26, 0x29, 0x2F
    POOL_MAX, POOL_AVG_EXCLUDE_PADDING = 0x1FF, 0x3FF
    LRN_ACROSS = 0xAFF
    BINARY_ADD, BINARY_MUL, BINARY_MAX, BINARY_MIN = range(0x1FFF0, 0x1FFF4)
    SOFTMAX, LOG_SOFTMAX = 0x30000, 0x30001


class Arg:
    """Roles of memories in a call."""

    SRC, SRC_1, DST, WEIGHTS, BIAS = 1, 2, 17, 33, 41
    MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52
    WORKSPACE, SCRATCHPAD = 64, 80
    DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169
    DIFF_SCALE, DIFF_SHIFT = 255, 256
    SCALES, ZERO_POINTS = 4096, 8192
    RESULTS: Final = frozenset({DST, DIFF_SRC, DIFF_WEIGHTS, DIFF_BIAS, DIFF_SCALE, DIFF_SHIFT})
    EITHER: Final = frozenset({MEAN, VARIANCE, WORKSPACE})
    """Read by some primitives and written by others."""

    @staticmethod
    def post_op(index: int) -> int:
        """The base of the roles of a post-op's own memories."""
        return 32768 * (index + 1)


class Flag:
    """How batch normalization works."""

    GLOBAL_STATS, SCALE, SHIFT, RELU = 1, 2, 4, 8


class Scratch:
    """Whose the scratch memory of primitives is."""

    LIBRARY, USER = 0, 1


class Query:
    """What a primitive descriptor tells."""

    IMPLEMENTATION = 8
    SRC, DIFF_SRC, WEIGHTS, DIFF_WEIGHTS, DST, DIFF_DST, WORKSPACE, SCRATCHPAD = range(129, 137)
    LAYOUTS = (SRC, DIFF_SRC, WEIGHTS, DIFF_WEIGHTS, DST, DIFF_DST)
