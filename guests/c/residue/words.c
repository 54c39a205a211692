#include "residue.h"

#include <string.h>

// A secret is looked for in words of eight bytes, at every address: the four that it
// has, the same hidden, and the eight of its bytes with another byte after each.
// They are kept so that neither they nor what is computed of them while they are
// looked for can be found itself: with a mask, and turned.
enum { most = 24, words_each = 16 };

static uint64_t mask, known[most * words_each];
static size_t words;
static uint32_t likely[65536 / 32]; // by a quarter of a known word

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

bool unhex(const char *hex, size_t n, unsigned char *bytes) {
  for (size_t i = 0; i < n; i++) {
    int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = (unsigned char)(high << 4 | low);
  }
  return true;
}

static uint64_t turned(uint64_t m) { return m << 23 | m >> 41; }

static void add(uint64_t m) {
  m = turned(m);
  known[words++] = m;
  likely[(m & 0xffff) / 32] |= 1u << (m & 31);
}

bool words_seek(const char *hex, size_t length) {
  static unsigned char shares[2][secret_size];
  size_t n = length / (4 * secret_size);
  if (n > most || length % (4 * secret_size)) return false;
  words = 0;
  memset(likely, 0, sizeof likely);
  for (size_t s = 0; s < n; s++, hex += 4 * secret_size) {
    if (!unhex(hex, secret_size, shares[0]) || !unhex(hex + 2 * secret_size, secret_size, shares[1])) return false;
    if (s == 0) memcpy(&mask, shares[0] + 5, sizeof mask);
    for (int w = 0; w < 4; w++) {
      uint64_t a, b;
      memcpy(&a, shares[0] + 8 * w, 8);
      memcpy(&b, shares[1] + 8 * w, 8);
      uint64_t m = (a ^ mask) ^ b;
      add(m);
      add(m ^ 0x0101010101010101u * hidden);
    }
    for (int w = 0; w < 8; w++) {
      uint64_t m = mask;
      for (int i = 3; i >= 0; i--) {
        int k = 4 * w + i;
        m ^= (uint64_t)(unsigned char)(shares[0][k] ^ shares[1][k]) << 16 * i ^ (uint64_t)between << (16 * i + 8);
      }
      add(m);
    }
  }
  memset(shares, 0, sizeof shares);
  return true;
}

void words_scan(const char *where, uintptr_t from, uintptr_t to) {
  for (uintptr_t p = from; p + 8 <= to;) {
    uint64_t v;
    memcpy(&v, (const void *)p, 8);
    if (!v) { // no secret has a byte that is 0
      p += 8;
      continue;
    }
    uint64_t m = turned(v ^ mask);
    if (likely[(m & 0xffff) / 32] & 1u << (m & 31))
      for (size_t i = 0; i < words; i++)
        if (known[i] == m) found(where, p);
    p++;
  }
}
