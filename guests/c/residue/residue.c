#include "residue.h"

#include <stdlib.h>
#include <string.h>

static sandboxd_answer places;
static unsigned char secret[secret_size];

static void number(uint64_t n) {
  char digits[20];
  int i = sizeof digits;
  do digits[--i] = (char)('0' + n % 10);
  while (n /= 10);
  sandboxd_add(&places, digits + i, sizeof digits - (size_t)i);
}

void found(const char *where, uint64_t at) {
  static const char *last;
  static int more;
  if (where != last) last = where, more = 0;
  if (++more > 5 && strcmp(where, "descriptor")) return; // enough of one place
  sandboxd_add(&places, where, strlen(where));
  sandboxd_add(&places, " ", 1);
  number(at);
  sandboxd_add(&places, "\n", 1);
}

// flag returns whether an argument is true.
static bool flag(sandboxd_json arguments, const char *name) {
  sandboxd_json v;
  return sandboxd_get(arguments, name, &v) && *v.at == 't';
}

// text returns an argument, or an empty string.
static char *text(sandboxd_json arguments, const char *name, size_t *n) {
  sandboxd_json v;
  char *s = sandboxd_get(arguments, name, &v) ? sandboxd_string(v, n) : NULL;
  if (!s) *n = 0, s = calloc(1, 1);
  return s;
}

// mine reads the caller's own secret from its shares.
static bool mine(sandboxd_json arguments) {
  static unsigned char other[secret_size];
  size_t n;
  char *s = text(arguments, "own", &n);
  bool ok = n == 4 * secret_size && unhex(s, secret_size, secret) && unhex(s + 2 * secret_size, secret_size, other);
  for (int i = 0; ok && i < secret_size; i++) secret[i] ^= other[i];
  free(s);
  return ok;
}

static void seek(sandboxd_json arguments) {
  size_t n;
  char *s = text(arguments, "seek", &n);
  bool ok = words_seek(s, n);
  free(s);
  if (!ok) {
    found("bad arguments", 0);
    return;
  }
  words_scan("memory", 0, __builtin_wasm_memory_size(0) << 16);
  reach();
  if (flag(arguments, "grow")) reach_grown();
}

static void end(const char *how) {
  if (!strcmp(how, "trap")) __builtin_trap();
  if (!strcmp(how, "exit")) _Exit(3);
  for (volatile int i = 0; !strcmp(how, "spin");) i++;
}

void sandboxd_handle(const char *tool, sandboxd_json arguments, sandboxd_answer *a) {
  size_t n;
  char *how = text(arguments, "end", &n);
  if (!strcmp(tool, "keep")) {
    if (!mine(arguments) || !keep(secret)) found("not kept", 0);
  } else if (flag(arguments, "fillFirst")) {
    if (mine(arguments)) fill(secret, flag(arguments, "answers"));
    seek(arguments);
  } else {
    seek(arguments);
    if (mine(arguments)) fill(secret, flag(arguments, "answers"));
  }
  end(how);
  sandboxd_text(a, places.at ? places.at : "", places.length, !strcmp(how, "error"));
}
