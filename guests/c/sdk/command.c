// A command reads the request from standard input and writes the answer to standard
// output.
#include "sandboxd.h"

#include <stdlib.h>
#include <unistd.h>

int main(void) {
  char *request = NULL;
  size_t length = 0, capacity = 0;
  for (;;) {
    if (length == capacity) {
      capacity = capacity ? 2 * capacity : 4096;
      if (!(request = realloc(request, capacity))) return 1;
    }
    ssize_t n = read(STDIN_FILENO, request + length, capacity - length);
    if (n < 0) return 1;
    if (n == 0) break;
    length += (size_t)n;
  }
  sandboxd_answer a = {0};
  sandboxd_run(request, length, &a);
  for (size_t done = 0; done < a.length;) {
    ssize_t n = write(STDOUT_FILENO, a.at + done, a.length - done);
    if (n < 0) return 1;
    done += (size_t)n;
  }
  return 0;
}
