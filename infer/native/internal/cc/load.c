#define _GNU_SOURCE
#include "load.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/syscall.h>
#endif

static int write_all(int fd, const char *p, size_t len) {
  while (len > 0) {
    ssize_t n = write(fd, p, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    p += n;
    len -= n;
  }
  return 0;
}

static kelvin_cc_loaded failed(const char *what, const char *why) {
  kelvin_cc_loaded l = {NULL, -1, NULL};
  size_t n = strlen(what) + strlen(why) + 3;
  l.error = malloc(n);
  if (l.error)
    snprintf(l.error, n, "%s: %s", what, why);
  return l;
}

static kelvin_cc_loaded opened(const char *path, int fd) {
  kelvin_cc_loaded l = {dlopen(path, RTLD_NOW | RTLD_LOCAL), fd, NULL};
  if (l.handle)
    return l;
  const char *why = dlerror();
  return failed("dlopen", why ? why : "no reason");
}

// Memory without a name in any folder holds the object. The descriptor stays open while the object is loaded: the
// loader knows objects by their paths, and a number that is used again would name the old one.
static kelvin_cc_loaded from_memory(const void *object, size_t len) {
#if defined(__linux__) && defined(SYS_memfd_create)
  int fd = syscall(SYS_memfd_create, "kelvin", 1u /* close on exec */);
  if (fd < 0)
    return failed("memfd_create", strerror(errno));
  if (write_all(fd, object, len)) {
    kelvin_cc_loaded l = failed("write", strerror(errno));
    close(fd);
    return l;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  kelvin_cc_loaded l = opened(path, fd);
  if (!l.handle)
    close(fd);
  return l;
#else
  (void)object, (void)len;
  return failed("memfd_create", "this system has none");
#endif
}

// A file in a new folder of this user alone, which is gone when the object is loaded.
static kelvin_cc_loaded from_file(const void *object, size_t len) {
  const char *tmp = getenv("TMPDIR");
  if (!tmp || tmp[0] != '/')
    tmp = "/tmp";
  char dir[4096], path[4112];
  if (snprintf(dir, sizeof dir, "%s/kelvin-XXXXXX", tmp) >= (int)sizeof dir || !mkdtemp(dir))
    return failed("a temporary folder", strerror(errno));
  snprintf(path, sizeof path, "%s/object.so", dir);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  kelvin_cc_loaded l;
  if (fd < 0 || write_all(fd, object, len)) {
    l = failed("a temporary file", strerror(errno));
    if (fd >= 0)
      close(fd);
  } else {
    close(fd);
    l = opened(path, -1);
  }
  unlink(path);
  rmdir(dir);
  return l;
}

kelvin_cc_loaded kelvin_cc_load(const void *object, size_t len) {
  kelvin_cc_loaded l = from_memory(object, len);
  if (l.handle)
    return l;
  // Some systems forbid code in such memory.
  kelvin_cc_loaded m = from_file(object, len);
  free(m.handle ? l.error : NULL);
  if (!m.handle) {
    free(m.error);
    return l;
  }
  return m;
}

void kelvin_cc_unload(void *handle, int fd) {
  dlclose(handle);
  if (fd >= 0)
    close(fd);
}

void *kelvin_cc_symbol(void *handle, const char *name) { return dlsym(handle, name); }

void kelvin_cc_free(void *p) { free(p); }

// The version of glibc whose vector functions the library has: 235 has them all.
int kelvin_cc_libmvec(void) {
#if defined(__linux__) && defined(__x86_64__) && defined(__GLIBC__)
  void *h = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!h)
    return 0;
  int version = 0;
  if (dlsym(h, "_ZGVbN2v_exp") && dlsym(h, "_ZGVdN4v_sin") && dlsym(h, "_ZGVeN8vv_pow"))
    version = 222;
  if (version && dlsym(h, "_ZGVeN8v_log1p") && dlsym(h, "_ZGVeN8v_tanh") && dlsym(h, "_ZGVdN4vv_atan2"))
    version = 235;
  dlclose(h);
  return version;
#else
  return 0;
#endif
}
