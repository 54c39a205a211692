// A guest that leaves a secret wherever it can, and looks for the secrets of others
// wherever it can reach. Secrets come as two shares, whose exclusive or they are, so
// that a guest that looks for one does not have it in its own memory.
#ifndef RESIDUE_H
#define RESIDUE_H

#include "../sdk/sandboxd.h"

#include <stdint.h>

enum { secret_size = 32 };

// What a secret is hidden by where it is not left as it is.
enum { hidden = 0xa5, between = 0xee };

// words.c: what is looked for.
// words_seek takes n secrets in shares, one after the other, in hexadecimal.
bool words_seek(const char *hex, size_t length);
// words_scan looks for them in memory and reports each to found.
void words_scan(const char *where, uintptr_t from, uintptr_t to);
bool unhex(const char *hex, size_t n, unsigned char *bytes);

// found adds a place to the answer.
void found(const char *where, uint64_t at);

// fill.c: what is left. With answers, standard output is left alone.
void fill(const unsigned char secret[secret_size], bool answers);
bool keep(const unsigned char secret[secret_size]);

// reach.c: what a guest reaches besides its memory as it is.
void reach(void);
void reach_grown(void);

void globals_set(uint64_t, uint64_t, uint64_t, uint32_t);
void globals_get(uint64_t out[4]);

#define kv(f) __attribute__((import_module("sandboxd_kv"), import_name(f)))
kv("put") uint32_t kv_put(const char *key, size_t key_len, const void *value, size_t value_len);
kv("scan") uint32_t kv_scan(const char *from, size_t from_len, const char *to, size_t to_len, uint32_t limit, void *buf,
                            size_t buf_len, uint32_t result[3]);

#endif
