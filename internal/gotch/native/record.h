// What one thread asks of libtorch while it evaluates a function: every operation with its arguments and results.
#ifndef KELVIN_RECORD_H
#define KELVIN_RECORD_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A recording, as words and bytes that the Go side reads: see record.go for their grammar.
typedef struct kelvin_record {
  int64_t *words;
  int64_t n_words;
  char *bytes; // names, strings and the contents of storages
  int64_t n_bytes;
  void *state;
} kelvin_record;

// Starts to record the calling thread, which must not be recorded yet. The contents of the known tensors are not
// copied. On failure the result is null and error is a message to free.
kelvin_record *kelvin_record_start(void **known, int n, char **error);

// Ends a recording and describes the outputs; it must be called on the thread that started. Where it fails the
// recording has ended all the same.
void kelvin_record_stop(kelvin_record *r, void **outputs, int n, char **error);

// Frees a recording that has ended.
void kelvin_record_free(kelvin_record *r);

#ifdef __cplusplus
}
#endif

#endif
