// The exports of a reactor: one request at a time lies in memory, and one answer.
#include "sandboxd.h"

#include <stdint.h>
#include <stdlib.h>

static char *request;
static sandboxd_answer answer;

__attribute__((export_name("sandboxd_alloc"))) char *sandboxd_alloc(size_t length) {
  free(request);
  if (!(request = malloc(length))) abort(); // the host would write to address 0
  return request;
}

__attribute__((export_name("sandboxd_call"))) uint64_t sandboxd_call(const char *at, size_t length) {
  answer.length = 0;
  sandboxd_run(at, length, &answer);
  return (uint64_t)(uintptr_t)answer.at << 32 | answer.length;
}
