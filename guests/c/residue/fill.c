#include "residue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wasi/api.h>

static unsigned char bss[40000], data[3000] = {1};
static void *kept[16];

// leave writes the secret as it is, in pieces, hidden and spread, as often as fits.
static void leave(volatile unsigned char *to, size_t n, const unsigned char *s) {
  size_t at = 0;
  for (unsigned form = 0; at + 2 * secret_size <= n; form++) {
    for (size_t i = 0; i < secret_size; i++) switch (form % 4) {
      case 0: to[at + i] = s[i]; break;
      case 1: to[at + i] = i / 8 == form / 4 % 4 ? s[i] : 0; break;
      case 2: to[at + i] = s[i] ^ hidden; break;
      default: to[at + 2 * i] = s[i], to[at + 2 * i + 1] = between;
      }
    at += 2 * secret_size + 1; // also where nothing is aligned
  }
}

static void heap(const unsigned char *s) {
  static const size_t sizes[] = {32, 64, 100, 1000, 5000, 30000, 70000, 40};
  for (int i = 0; i < 8; i++) {
    if (!(kept[i] = malloc(sizes[i]))) continue;
    leave(kept[i], sizes[i], s);
    if (i % 2) free(kept[i]);
  }
}

__attribute__((noinline)) static int stack(const unsigned char *s, int depth) {
  volatile unsigned char here[500];
  leave(here, sizeof here, s);
  return depth ? stack(s, depth - 1) + here[depth] : here[0];
}

// grown fills all memory that there can be, a piece a page of the machine and all of
// the last page.
static void grown(const unsigned char *s) {
  while (__builtin_wasm_memory_grow(0, 1) != (size_t)-1) {
    unsigned char *end = (unsigned char *)(__builtin_wasm_memory_size(0) << 16), *page = end - 65536;
    for (int i = 0; i < 16; i++) memcpy(page + 4096 * i + 8 * (i % 500), s + 8 * (i % 4), 8);
    leave(end - 4096, 4096, s);
  }
}

// name makes a path below scratch of eight bytes of the secret.
static const char *name(const unsigned char *s, int i, char out[32]) {
  static const char digits[] = "0123456789abcdef";
  memcpy(out, "/tmp/", 5);
  for (int k = 0; k < 8; k++) out[5 + 2 * k] = digits[s[8 * (i % 4) + k] >> 4], out[6 + 2 * k] = digits[s[8 * (i % 4) + k] & 15];
  out[21] = (char)('a' + i), out[22] = 0;
  return out;
}

// files leaves files with the secret open in scratch, some in place of the standard
// streams, and a folder that is being read.
static void files(const unsigned char *s, bool answers) {
  char path[32];
  for (int i = 0; i < 6; i++) {
    int fd = open(name(s, i, path), O_RDWR | O_CREAT, 0600);
    if (fd < 0) continue;
    write(fd, s, secret_size);
    lseek(fd, i, SEEK_SET);
    if (i < 3 && !(answers && i == STDOUT_FILENO)) __wasi_fd_renumber((__wasi_fd_t)fd, (__wasi_fd_t)i);
  }
  mkdir(name(s, 7, path), 0700);
  open(path, O_RDONLY | O_DIRECTORY);
}

void fill(const unsigned char secret[secret_size], bool answers) {
  unsigned char s[secret_size];
  memcpy(s, secret, sizeof s);
  leave(bss, sizeof bss, s);
  leave(data, sizeof data, s);
  heap(s);
  stack(s, 20);
  if (!answers) fwrite(s, 1, sizeof s, stdout); // stays in the buffer
  write(STDERR_FILENO, s, sizeof s);
  setenv("KEPT", (const char *)s, 1);
  files(s, answers);
  grown(s);
  uint64_t w[4];
  memcpy(w, s, sizeof w);
  globals_set(w[0], w[1], w[2], (uint32_t)w[3]);
}

bool keep(const unsigned char secret[secret_size]) {
  int fd = open("/data/kept", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  bool ok = fd >= 0 && write(fd, secret, secret_size) == secret_size && close(fd) == 0;
  return ok && kv_put("kept", 4, secret, secret_size) == 0;
}
