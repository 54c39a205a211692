// A plug-in of Extism around the handlers of guests/c: the request is copied in and
// the answer out by eight bytes at a time, as its kits do.
#include "sandboxd.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOST(name) __attribute__((import_module("extism:host/env"), import_name(#name)))

HOST(input_length) uint64_t host_input_length(void);
HOST(input_load_u64) uint64_t host_input_load_u64(uint64_t at);
HOST(input_load_u8) uint32_t host_input_load_u8(uint64_t at);
HOST(alloc) uint64_t host_alloc(uint64_t n);
HOST(store_u64) void host_store_u64(uint64_t at, uint64_t v);
HOST(store_u8) void host_store_u8(uint64_t at, uint32_t v);
HOST(output_set) void host_output_set(uint64_t at, uint64_t n);

static sandboxd_answer answer;

__attribute__((export_name("call"))) int32_t call(void) {
  uint64_t n = host_input_length(), i = 0;
  char *request = malloc(n);
  if (!request) return 1;
  for (; i + 8 <= n; i += 8) {
    uint64_t word = host_input_load_u64(i);
    memcpy(request + i, &word, 8);
  }
  for (; i < n; i++) request[i] = (char)host_input_load_u8(i);
  answer.length = 0;
  sandboxd_run(request, n, &answer);
  free(request);
  uint64_t at = host_alloc(answer.length);
  for (i = 0; i + 8 <= answer.length; i += 8) {
    uint64_t word;
    memcpy(&word, answer.at + i, 8);
    host_store_u64(at + i, word);
  }
  for (; i < answer.length; i++) host_store_u8(at + i, (unsigned char)answer.at[i]);
  host_output_set(at, answer.length);
  return answer.short_of_memory;
}
