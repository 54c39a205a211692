#include "sandboxd.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The grammar is that of RFC 8259. Bytes beyond ASCII in strings are not looked at:
// the host sends valid UTF-8.

// How deep values may lie in one another; requests have 64 levels and their own two.
enum { deepest = 100 };

static const char *space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

static int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// unit reads the four digits of \uXXXX.
static bool unit(const char *p, const char *end, uint32_t *u) {
  if (end - p < 4) return false;
  *u = 0;
  for (int i = 0; i < 4; i++) {
    int d = hex(p[i]);
    if (d < 0) return false;
    *u = *u << 4 | (uint32_t)d;
  }
  return true;
}

static int utf8(uint32_t r, char *out) {
  if (r < 0x80) return out[0] = (char)r, 1;
  if (r < 0x800) return out[0] = (char)(0xc0 | r >> 6), out[1] = (char)(0x80 | (r & 0x3f)), 2;
  if (r < 0x10000) {
    out[0] = (char)(0xe0 | r >> 12), out[1] = (char)(0x80 | (r >> 6 & 0x3f)), out[2] = (char)(0x80 | (r & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | r >> 18), out[1] = (char)(0x80 | (r >> 12 & 0x3f));
  out[2] = (char)(0x80 | (r >> 6 & 0x3f)), out[3] = (char)(0x80 | (r & 0x3f));
  return 4;
}

// escape resolves what follows a backslash and returns what comes after it, NULL
// where it is no escape. Half of a surrogate pair is U+FFFD.
static const char *escape(const char *p, const char *end, char out[4], int *n) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (p == end) return NULL;
  const char *name = *p ? strchr(names, *p) : NULL;
  if (name) {
    out[0] = values[name - names], *n = 1;
    return p + 1;
  }
  uint32_t high, low;
  if (*p != 'u' || !unit(p + 1, end, &high)) return NULL;
  p += 5;
  if (high >= 0xd800 && high < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && unit(p + 2, end, &low) &&
      low >= 0xdc00 && low < 0xe000) {
    p += 6;
    high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  } else if (high >= 0xd800 && high < 0xe000) {
    high = 0xfffd;
  }
  *n = utf8(high, out);
  return p;
}

// string goes through the string at p, and writes what it says to out where that is
// not NULL: never more bytes than it has itself. It returns what comes after it,
// NULL where there is no string.
static const char *string(const char *p, const char *end, char *out, size_t *length) {
  if (p == end || *p++ != '"') return NULL;
  size_t n = 0;
  while (p < end && *p != '"') {
    if ((unsigned char)*p < 0x20) return NULL;
    if (*p != '\\') {
      if (out) out[n] = *p;
      n++, p++;
      continue;
    }
    char bytes[4];
    int more = 0;
    if (!(p = escape(p + 1, end, bytes, &more))) return NULL;
    if (out) memcpy(out + n, bytes, (size_t)more);
    n += (size_t)more;
  }
  if (p == end) return NULL;
  if (length) *length = n;
  return p + 1;
}

static const char *digits(const char *p, const char *end) {
  if (p == end || *p < '0' || *p > '9') return NULL;
  while (p < end && *p >= '0' && *p <= '9') p++;
  return p;
}

static const char *number(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  if (p < end && *p == '0')
    p++;
  else if (!(p = digits(p, end)))
    return NULL;
  if (p < end && *p == '.' && !(p = digits(p + 1, end))) return NULL;
  if (p < end && (*p == 'e' || *p == 'E')) {
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    p = digits(p, end);
  }
  return p;
}

static const char *word(const char *p, const char *end, const char *w) {
  size_t n = strlen(w);
  return (size_t)(end - p) >= n && memcmp(p, w, n) == 0 ? p + n : NULL;
}

// value goes through the value at p and returns what comes after it, NULL where
// there is none.
static const char *value(const char *p, const char *end, int depth) {
  if (p == end) return NULL;
  switch (*p) {
  case '"': return string(p, end, NULL, NULL);
  case 't': return word(p, end, "true");
  case 'f': return word(p, end, "false");
  case 'n': return word(p, end, "null");
  case '{':
  case '[': break;
  default: return number(p, end);
  }
  bool object = *p == '{';
  char close = object ? '}' : ']';
  if (depth == deepest) return NULL;
  p = space(p + 1, end);
  if (p < end && *p == close) return p + 1;
  for (;;) {
    if (object) {
      if (!(p = string(p, end, NULL, NULL))) return NULL;
      p = space(p, end);
      if (p == end || *p != ':') return NULL;
      p = space(p + 1, end);
    }
    if (!(p = value(p, end, depth + 1))) return NULL;
    p = space(p, end);
    if (p == end) return NULL;
    if (*p == close) return p + 1;
    if (*p != ',') return NULL;
    p = space(p + 1, end);
  }
}

bool sandboxd_parse(const char *text, size_t length, sandboxd_json *v) {
  const char *end = text + length;
  v->at = space(text, end);
  v->end = value(v->at, end, 0);
  return v->end && space(v->end, end) == end;
}

// named compares a key with a name. The key was checked.
static bool named(const char *key, const char *end, const char *name) {
  for (key++; *key != '"';) {
    char bytes[4] = {*key};
    int n = 1;
    key = *key == '\\' ? escape(key + 1, end, bytes, &n) : key + 1;
    for (int i = 0; i < n; i++, name++)
      if (!*name || *name != bytes[i]) return false;
  }
  return !*name;
}

bool sandboxd_get(sandboxd_json object, const char *name, sandboxd_json *member) {
  const char *p = object.at, *end = object.end;
  if (p == end || *p != '{') return false;
  for (p = space(p + 1, end); *p == '"'; p = space(p + (*p == ','), end)) {
    const char *key = p;
    p = space(string(p, end, NULL, NULL), end);
    p = space(p + 1, end);
    sandboxd_json v = {p, value(p, end, 0)};
    if (named(key, end, name)) {
      *member = v;
      return true;
    }
    p = space(v.end, end);
  }
  return false;
}

char *sandboxd_string(sandboxd_json v, size_t *length) {
  if (v.at == v.end || *v.at != '"') return NULL;
  char *out = malloc((size_t)(v.end - v.at));
  if (!out) return NULL;
  string(v.at, v.end, out, length);
  out[*length] = 0;
  return out;
}
