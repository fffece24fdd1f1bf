// What CUDA's compiler knows by itself, for a C++ compiler of the host. One group runs at a time.
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__

struct uint3_ { unsigned int x, y, z; };
static uint3_ threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) double2 { double x, y; };
static inline uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d) { return {a, b, c, d}; }
static inline float2 make_float2(float a, float b) { return {a, b}; }
static inline double2 make_double2(double a, double b) { return {a, b}; }

// Without <math.h>, whose C++ form has overloads of its own; it also makes compiling quicker.
#define OD_ONE(name) \
  extern "C" double name(double); \
  static inline float name(float x) { return __builtin_##name##f(x); }
#define OD_TWO(name) \
  extern "C" double name(double, double); \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
extern "C" double fma(double, double, double);
extern "C" int abs(int);
OD_ONE(exp) OD_ONE(expm1) OD_ONE(log) OD_ONE(log1p) OD_ONE(log2) OD_ONE(exp2) OD_ONE(sqrt)
OD_ONE(sin) OD_ONE(cos) OD_ONE(tan) OD_ONE(asin) OD_ONE(acos) OD_ONE(atan) OD_ONE(sinh)
OD_ONE(cosh) OD_ONE(tanh) OD_ONE(asinh) OD_ONE(acosh) OD_ONE(atanh) OD_ONE(floor) OD_ONE(ceil)
OD_ONE(trunc) OD_ONE(rint) OD_ONE(round) OD_ONE(fabs) OD_ONE(erf) OD_ONE(erfc) OD_ONE(lgamma)
OD_ONE(cbrt) OD_ONE(tgamma)
OD_TWO(pow) OD_TWO(fmod) OD_TWO(atan2) OD_TWO(nextafter) OD_TWO(fmax) OD_TWO(fmin) OD_TWO(copysign)
OD_TWO(hypot)
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
static inline float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
#define OD_PAIR(T) \
  static inline T max(T a, T b) { return a > b ? a : b; } \
  static inline T min(T a, T b) { return a < b ? a : b; }
OD_PAIR(int) OD_PAIR(unsigned) OD_PAIR(long long) OD_PAIR(unsigned long long)
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }

static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a * b) >> 32);
}
template <class To, class From> static inline To od_same_bits(From v) {
  To out;
  memcpy(&out, &v, sizeof out);
  return out;
}
static inline double __longlong_as_double(long long v) { return od_same_bits<double>(v); }
static inline int __float_as_int(float v) { return od_same_bits<int>(v); }
static inline float __int_as_float(int v) { return od_same_bits<float>(v); }

static float od_half_float(unsigned short h) {
  unsigned sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, rest = h & 1023;
  if (exponent == 31) return __int_as_float(sign | 0x7f800000u | rest << 13);
  if (exponent == 0) {
    float v = __builtin_ldexpf((float)rest, -24);
    return sign ? -v : v;
  }
  return __int_as_float(sign | (exponent + 112) << 23 | rest << 13);
}
static unsigned short od_float_half(float v) {
  unsigned b = (unsigned)__float_as_int(v), sign = (b >> 16) & 0x8000u, a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);
  if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (a < 0x38800000u) {
    float scaled = __builtin_ldexpf(__int_as_float((int)a), 24);
    return (unsigned short)(sign | (unsigned)__builtin_rintf(scaled));
  }
  unsigned rounded = a + 0xfffu + ((a >> 13) & 1);
  return (unsigned short)(sign | (rounded - 0x38000000u) >> 13);
}

// ---------------------------------------------------------------- groups
static ucontext_t od_scheduler, *od_self;
static void (*od_call)(void**);
static void** od_args;
static bool od_waits;
static unsigned od_alive;
static const int OD_STACK = 1 << 16;

static void __syncthreads() {
  od_waits = true;
  uint3_ mine = threadIdx;
  swapcontext(od_self, &od_scheduler);
  threadIdx = mine;
}

static void od_item() {
  od_call(od_args);
  --od_alive;
  setcontext(&od_scheduler);
}

// Without a barrier in the text (OD_BARRIERS), items simply run one after the other.
static void od_group(bool barriers) {
  unsigned n = blockDim.x * blockDim.y * blockDim.z;
  static ucontext_t* items = 0;
  static char* stacks = 0;
  static bool* done = 0;
  if (barriers && !items) {
    items = new ucontext_t[1024];
    stacks = new char[(size_t)1024 * OD_STACK];
    done = new bool[1024];
  }
  if (barriers) od_alive = n;
  bool first = true;
  do {
    unsigned i = 0;
    for (unsigned z = 0; z < blockDim.z; ++z)
      for (unsigned y = 0; y < blockDim.y; ++y)
        for (unsigned x = 0; x < blockDim.x; ++x, ++i) {
          threadIdx = {x, y, z};
          if (!barriers) {
            od_call(od_args);
            continue;
          }
          if (first) {
            done[i] = false;
            getcontext(&items[i]);
            items[i].uc_stack.ss_sp = stacks + (size_t)i * OD_STACK;
            items[i].uc_stack.ss_size = OD_STACK;
            items[i].uc_link = &od_scheduler;
            makecontext(&items[i], od_item, 0);
          } else if (done[i]) {
            continue;
          }
          od_self = &items[i];
          unsigned before = od_alive;
          swapcontext(&od_scheduler, od_self);
          if (od_alive != before) done[i] = true;
        }
    first = false;
  } while (barriers && od_alive);
}

static void od_grid(const unsigned* s, void** args, void (*call)(void**), bool barriers) {
  od_call = call;
  od_args = args;
  gridDim = {s[0], s[1], s[2]};
  blockDim = {s[3], s[4], s[5]};
  for (unsigned z = 0; z < s[2]; ++z)
    for (unsigned y = 0; y < s[1]; ++y)
      for (unsigned x = 0; x < s[0]; ++x) {
        blockIdx = {x, y, z};
        od_group(barriers);
      }
}

template <int... I> struct od_list {};
template <int N, int... I> struct od_count : od_count<N - 1, N - 1, I...> {};
template <int... I> struct od_count<0, I...> { typedef od_list<I...> type; };
template <class F> struct od_kernel;
template <class... A> struct od_kernel<void (*)(A...)> {
  template <void (*F)(A...), int... I> static void unpack(void** args, od_list<I...>) {
    F(*(A*)args[I]...);
  }
  template <void (*F)(A...)> static void call(void** args) {
    unpack<F>(args, typename od_count<sizeof...(A)>::type());
  }
};
#ifndef OD_BARRIERS
#define OD_BARRIERS false
#endif
#define OD_ENTRY(name) \
  extern "C" void od_launch_##name(void** args, const unsigned* sizes) { \
    od_grid(sizes, args, od_kernel<decltype(&name)>::template call<&name>, OD_BARRIERS); \
  }
