// One tool, echo, which answers with its argument.
#include "../sdk/sandboxd.h"

#include <stdlib.h>
#include <string.h>

void sandboxd_handle(const char *tool, sandboxd_json arguments, sandboxd_answer *a) {
  static const char unknown[] = "tool: unknown", missing[] = "arguments: text is missing";
  sandboxd_json text;
  size_t length;
  char *s;
  if (strcmp(tool, "echo") != 0) {
    sandboxd_text(a, unknown, sizeof unknown - 1, true);
  } else if (!sandboxd_get(arguments, "text", &text) || !(s = sandboxd_string(text, &length))) {
    sandboxd_text(a, missing, sizeof missing - 1, true);
  } else {
    sandboxd_text(a, s, length, false);
    free(s);
  }
}
