#include "sandboxd.h"

#include <stdlib.h>
#include <string.h>

// room returns where n bytes more go, NULL where memory is short.
static char *room(sandboxd_answer *a, size_t n) {
  if (a->short_of_memory) return NULL;
  if (n > a->capacity - a->length) {
    size_t need = a->length + n, twice = 2 * a->capacity;
    if (need < n || twice < a->capacity) need = (size_t)-1;
    char *at = realloc(a->at, need > twice ? need : twice);
    if (!at) {
      a->short_of_memory = true;
      return NULL;
    }
    a->at = at;
    a->capacity = need > twice ? need : twice;
  }
  a->length += n;
  return a->at + a->length - n;
}

void sandboxd_add(sandboxd_answer *a, const char *bytes, size_t length) {
  char *to = room(a, length);
  if (to) memcpy(to, bytes, length);
}

// escaped writes how a character stands in a JSON string, and returns how long that is.
static size_t escaped(unsigned char c, char out[6]) {
  static const char digits[] = "0123456789abcdef";
  if (c == '"' || c == '\\') return out[0] = '\\', out[1] = (char)c, 2;
  if (c >= 0x20) return out[0] = (char)c, 1;
  memcpy(out, "\\u00", 4);
  return out[4] = digits[c >> 4], out[5] = digits[c & 15], 6;
}

void sandboxd_add_string(sandboxd_answer *a, const char *text, size_t length) {
  sandboxd_add(a, "\"", 1);
  size_t plain = 0; // where what needs no escape began
  for (size_t i = 0; i < length; i++) {
    char out[6];
    size_t n = escaped((unsigned char)text[i], out);
    if (n == 1) continue;
    sandboxd_add(a, text + plain, i - plain);
    sandboxd_add(a, out, n);
    plain = i + 1;
  }
  sandboxd_add(a, text + plain, length - plain);
  sandboxd_add(a, "\"", 1);
}

void sandboxd_text(sandboxd_answer *a, const char *text, size_t length, bool error) {
  static const char head[] = "{\"content\":[{\"type\":\"text\",\"text\":", ok[] = "}]}", bad[] = "}],\"isError\":true}";
  a->length = 0;
  sandboxd_add(a, head, sizeof head - 1);
  sandboxd_add_string(a, text, length);
  if (error)
    sandboxd_add(a, bad, sizeof bad - 1);
  else
    sandboxd_add(a, ok, sizeof ok - 1);
}

static void refuse(sandboxd_answer *a, const char *why) { sandboxd_text(a, why, strlen(why), true); }

void sandboxd_run(const char *request, size_t length, sandboxd_answer *a) {
  sandboxd_json r, name, arguments = {NULL, NULL};
  size_t n;
  char *tool = NULL;
  if (!sandboxd_parse(request, length, &r)) {
    refuse(a, "request: not JSON");
  } else if (!sandboxd_get(r, "tool", &name) || !(tool = sandboxd_string(name, &n))) {
    refuse(a, "request: tool is missing");
  } else {
    sandboxd_get(r, "arguments", &arguments);
    sandboxd_handle(tool, arguments, a);
  }
  free(tool);
  if (a->short_of_memory) abort(); // half an answer is none
}
