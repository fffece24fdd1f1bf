/* Preloaded into a program, it has system calls under a folder fail, from the n-th on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX], call[32];
static int made, first, last, number;

/* Calls of one kind fail with an error number, from the first to the last; 0 is none at all. */
void failing_calls(const char *under, const char *kind, int from, int to, int error) {
  snprintf(folder, sizeof folder, "%s", under);
  snprintf(call, sizeof call, "%s", kind);
  made = 0, first = from, last = to, number = error;
}

/* How many calls of the kind there were since. */
int calls_made(void) { return made; }

static int fails(const char *kind, const char *path) {
  if (!folder[0] || strcmp(kind, call) || strncmp(path, folder, strlen(folder))) return 0;
  made++;
  if (made < first || made > last) return 0;
  errno = number;
  return 1;
}

static int fails_at(const char *kind, int file) {
  char link[64], path[PATH_MAX];
  if (!folder[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return fails(kind, path);
}

#define NEXT(type, name, ...) type (*next)(__VA_ARGS__) = dlsym(RTLD_NEXT, #name)

/* An error number of 0 is a disk that takes half of what it is given. */
ssize_t write(int file, const void *data, size_t size) {
  NEXT(ssize_t, write, int, const void *, size_t);
  if (!fails_at("write", file)) return next(file, data, size);
  return number ? -1 : next(file, data, size > 1 ? size / 2 : size);
}

int fsync(int file) {
  NEXT(int, fsync, int);
  return fails_at("fsync", file) ? -1 : next(file);
}

int close(int file) {
  NEXT(int, close, int);
  int failed = fails_at("close", file), result = next(file);
  if (failed) errno = number;
  return failed ? -1 : result;
}

int rename(const char *from, const char *to) {
  NEXT(int, rename, const char *, const char *);
  return fails("rename", to) ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode) {
  NEXT(int, mkdir, const char *, mode_t);
  return fails("mkdir", path) ? -1 : next(path, mode);
}

static int writes(int flags) { return flags & (O_CREAT | O_WRONLY | O_RDWR); }

#define OPEN(name)                                              \
  int name(const char *path, int flags, ...) {                  \
    NEXT(int, name, const char *, int, ...);                    \
    va_list rest;                                               \
    va_start(rest, flags);                                      \
    int mode = va_arg(rest, int);                               \
    va_end(rest);                                               \
    if (writes(flags) && fails("create", path)) return -1;      \
    return next(path, flags, mode);                             \
  }
OPEN(open)
OPEN(open64)
