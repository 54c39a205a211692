// A program that does what its first argument says before it reads its request, and
// what the request says afterwards: {"arguments":{"do":"grow"}}.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>

static uint32_t table[20000]; // made at start-up
static uint64_t past, born, calls;
static char request[4096];

static void say(const char *s) { write(1, s, strlen(s)); }

static void numberTo(int f, uint64_t n) {
	char b[24], *p = b + sizeof b;
	do *--p = '0' + n % 10; while (n /= 10);
	write(f, p, b + sizeof b - p);
}

static void number(uint64_t n) { numberTo(1, n); }

// keep puts a number in place of what a file has.
static void keep(uint64_t n) {
	int f = open("/data/kept", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	numberTo(f, n);
	close(f);
	say("kept");
}

static uint64_t drawn(void) {
	uint64_t v;
	if (getentropy(&v, sizeof v)) abort();
	return v;
}

static int64_t now(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static volatile int depth;
static int deeper(int n) {
	volatile char frame[64];
	frame[n & 63] = n;
	depth++;
	return n ? deeper(n - 1) + frame[n & 63] : 0;
}

// gather reads the request in the midst of n calls.
static size_t gather(int n, size_t piece, size_t have) {
	volatile char frame[16];
	frame[n & 15] = n;
	if (n) return gather(n - 1, piece, have) + 0 * frame[n & 15];
	for (ssize_t got; (got = read(0, request + have, piece)) > 0;) have += got;
	return have;
}

static void early(const char *what) {
	char b[64];
	if (!strcmp(what, "volume")) open("/data/old", O_RDONLY);
	if (!strcmp(what, "scratch")) open("/tmp/new", O_CREAT | O_WRONLY, 0600);
	if (!strcmp(what, "malloc") && !malloc(100)) abort();
	if (!strcmp(what, "print") || (!strcmp(what, "seldom") && past % 8 == 0)) say("early ");
	if (!strcmp(what, "log")) write(2, "early\n", 6);
	if (!strcmp(what, "exit")) exit(0);
	if (!strcmp(what, "fail")) exit(3);
	if (!strcmp(what, "trap")) __builtin_trap();
	if (!strcmp(what, "spin")) for (;;) depth++;
	if (!strcmp(what, "close")) close(0);
	if (!strcmp(what, "renumber")) __wasi_fd_renumber(0, 1);
	if (!strcmp(what, "nonblock")) fcntl(0, F_SETFL, O_NONBLOCK);
	if (!strcmp(what, "package")) {
		int f = open("/package/table", O_RDONLY);
		ssize_t n = read(f, b, sizeof b);
		for (int i = 0; i < n; i++) past += b[i];
		close(f);
	}
	if (!strcmp(what, "open")) open("/package/table", O_RDONLY);
	if (!strcmp(what, "poll")) {
		struct pollfd p = {.fd = 0, .events = POLLIN};
		poll(&p, 1, -1);
	}
	if (!strcmp(what, "empty")) read(0, b, 0);
	if (!strcmp(what, "sleep")) {
		struct timespec t = {.tv_sec = 1};
		nanosleep(&t, NULL);
	}
}

static void serve(const char *what) {
	if (!strcmp(what, "sum")) {
		uint64_t sum = 0;
		for (int i = 0; i < 20000; i++) sum += table[i];
		number(sum + ++calls);
	}
	if (!strcmp(what, "past")) number(past);
	if (!strcmp(what, "born")) number(born);
	if (!strcmp(what, "random")) number(drawn());
	if (!strcmp(what, "time")) number(now(CLOCK_REALTIME) / 1000);
	if (!strcmp(what, "grow")) {
		char *b = malloc(2 << 20);
		if (!b) abort();
		memset(b, 1, 2 << 20);
		number(b[(2 << 20) - 1] + ++calls);
	}
	if (!strcmp(what, "fill")) {
		uint64_t n = 0;
		for (void *volatile p; (p = malloc(1 << 16));) n++;
		number(n);
	}
	if (!strcmp(what, "deep")) number(deeper(1000) == 0 || depth == 1001);
	if (!strcmp(what, "forever")) number(deeper(1 << 30));
	if (!strcmp(what, "trap")) __builtin_trap();
	if (!strcmp(what, "exit")) exit(7);
	if (!strcmp(what, "spin")) for (;;) depth++;
	if (!strcmp(what, "flood")) for (;;) say("0123456789abcdef");
	if (!strcmp(what, "write")) {
		int f = open("/data/new", O_CREAT | O_WRONLY, 0600);
		write(f, "x", 1);
		close(f);
		say("written");
	}
	if (!strcmp(what, "keep")) keep(7);
	if (!strcmp(what, "keep past")) keep(past);
	if (!strcmp(what, "keep born")) keep(born);
	if (!strcmp(what, "keep day")) keep(born / 86400000);
	if (!strcmp(what, "look")) number(open("/data/old", O_RDONLY) >= 0);
}

int main(int argc, char **argv) {
	for (int i = 0; i < 20000; i++) table[i] = i;
	past = drawn();
	born = now(CLOCK_REALTIME);
	const char *start = argc > 1 ? argv[1] : "";
	early(start);
	if (!strcmp(start, "never")) {
		say("no request");
		return 0;
	}
	size_t piece = strcmp(start, "pieces") ? sizeof request - 1 : 7;
	size_t n = gather(!strcmp(start, "deep") ? 100 : !strcmp(start, "deeper") ? 20000 : 1, piece, 0);
	request[n] = 0;
	char *at = strstr(request, "\"do\":\"");
	if (!at) {
		say("nothing to do");
		return 0;
	}
	at += 6;
	char *end = strchr(at, '"');
	if (end) *end = 0;
	serve(at);
	return 0;
}
