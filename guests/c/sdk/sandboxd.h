// What a program in C needs to be a sandboxd tool package: JSON, the answer, and
// with command.c or reactor.c the ABI (docs/abi.md). The program defines
// sandboxd_handle and is linked with json.c, answer.c and one of the two.
#ifndef SANDBOXD_H
#define SANDBOXD_H

#include <stdbool.h>
#include <stddef.h>

// A JSON value within a text that was checked.
typedef struct {
  const char *at, *end;
} sandboxd_json;

// sandboxd_parse checks that text is one JSON value and nothing else.
bool sandboxd_parse(const char *text, size_t length, sandboxd_json *value);

// sandboxd_get finds a member of an object. It returns false where the value is
// no object or has no such member.
bool sandboxd_get(sandboxd_json object, const char *name, sandboxd_json *member);

// sandboxd_string returns a string with its escapes resolved, and a zero byte after
// it, for the caller to free. It returns NULL where the value is no string, or
// memory is short.
char *sandboxd_string(sandboxd_json value, size_t *length);

// An answer that is being written.
typedef struct {
  char *at;
  size_t length, capacity;
  bool short_of_memory; // what was added since then is missing
} sandboxd_answer;

// sandboxd_add adds bytes as they are, sandboxd_add_string adds text as a JSON
// string, with its quotes. The text must be UTF-8.
void sandboxd_add(sandboxd_answer *a, const char *bytes, size_t length);
void sandboxd_add_string(sandboxd_answer *a, const char *text, size_t length);

// sandboxd_text makes the answer a tool result of one text, in place of what was
// added before. With error, nothing that the call wrote is kept.
void sandboxd_text(sandboxd_answer *a, const char *text, size_t length, bool error);

// sandboxd_handle answers a call of a tool. The program defines it.
void sandboxd_handle(const char *tool, sandboxd_json arguments, sandboxd_answer *a);

// sandboxd_run answers a request by sandboxd_handle.
void sandboxd_run(const char *request, size_t length, sandboxd_answer *a);

#endif
