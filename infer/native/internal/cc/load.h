#ifndef KELVIN_CC_LOAD_H
#define KELVIN_CC_LOAD_H
#include <stddef.h>

// A loaded object, or an error that the caller frees.
typedef struct kelvin_cc_loaded {
  void *handle;
  int fd;
  char *error;
} kelvin_cc_loaded;

kelvin_cc_loaded kelvin_cc_load(const void *object, size_t len);
void kelvin_cc_unload(void *handle, int fd);
void *kelvin_cc_symbol(void *handle, const char *name);
void kelvin_cc_free(void *p);
int kelvin_cc_libmvec(void);
#endif
