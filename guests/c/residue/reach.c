#include "residue.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wasi/api.h>

static unsigned char room[8192];

static void look(const char *where, size_t n) {
  words_scan(where, (uintptr_t)room, (uintptr_t)room + n);
  memset(room, 0, n);
}

// content looks at what a descriptor gives to read.
static void content(const char *where, int fd) {
  for (ssize_t n; (n = read(fd, room, sizeof room)) > 0;) look(where, (size_t)n);
}

// descriptors looks at every number that can be one: files that are open are
// somebody else's.
static void descriptors(void) {
  for (__wasi_fd_t fd = 0; fd <= 1100; fd++) {
    __wasi_fdstat_t stat;
    __wasi_prestat_t pre;
    if (__wasi_fd_fdstat_get(fd, &stat)) continue;
    bool folder = stat.fs_filetype == __WASI_FILETYPE_DIRECTORY;
    if (fd < 3 ? folder || stat.fs_filetype == __WASI_FILETYPE_REGULAR_FILE : __wasi_fd_prestat_get(fd, &pre) != 0)
      found("descriptor", fd);
    if (fd == 0) content("standard input", 0);
  }
}

// tree looks at the names and contents below a folder. In scratch there is nothing.
static void tree(const char *path, bool empty) {
  DIR *d = opendir(path);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    if (empty) found("scratch", 0);
    char below[600];
    if (strlen(path) + strlen(e->d_name) + 2 > sizeof below) continue;
    strcpy(below, path), strcat(below, "/"), strcat(below, e->d_name);
    if (e->d_type == DT_DIR) {
      tree(below, empty);
      continue;
    }
    int fd = open(below, O_RDONLY);
    if (fd < 0) continue;
    content(empty ? "scratch" : "volume", fd);
    close(fd);
  }
  closedir(d);
}

static void keys(void) {
  uint32_t result[3] = {0};
  if (kv_scan("\0", 1, "", 0, 1000, room, sizeof room, result) == 0) look("keys", result[1]);
}

static void environment(void) {
  __wasi_size_t n = 0, bytes = 0;
  static unsigned char *at[64];
  if (!__wasi_environ_sizes_get(&n, &bytes) && n <= 64 && bytes <= sizeof room && !__wasi_environ_get(at, room))
    look("environment", bytes);
  if (!__wasi_args_sizes_get(&n, &bytes) && n <= 64 && bytes <= sizeof room && !__wasi_args_get(at, room))
    look("arguments", bytes);
}

void reach(void) {
  uint64_t g[4] = {0};
  globals_get(g);
  for (int i = 0; i < 4; i++)
    if (g[i]) found("global", (uint64_t)i);
  descriptors();
  tree("/tmp", true);
  tree("/data", false);
  keys();
  environment();
}

// reach_grown looks at all memory that there can be besides what there is: nobody has
// written there.
void reach_grown(void) {
  while (__builtin_wasm_memory_grow(0, 1) != (size_t)-1) {
    uint64_t *end = (uint64_t *)(__builtin_wasm_memory_size(0) << 16);
    for (uint64_t *p = end - 8192; p < end; p++)
      if (*p) {
        found("grown", (uintptr_t)p);
        break;
      }
  }
}
