// An interpreter for tools in JavaScript: QuickJS as a program of abi command.
//
//     qjs /package/main.js
//
// main.js is an ES module whose default export has a function for each tool, by its
// name. It is called with the arguments and the context of the call, and may return
// a promise. A result of MCP (an object with content) is the answer as it is; a text
// is text; any other value is structured content. What it throws is an error that the
// client is told; the stack goes to the log.
//
// The module is evaluated before standard input is read for the first time, and
// Math.random is seeded after that: with reseeds: true calls begin there.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quickjs.h"

// Bytes of the stack that scripts may use, some 950 calls in one another. The engine's own
// stack ends, too, and sooner where the program can be left (after some 1,300): a
// script is to see a RangeError before that.
#define STACK (256 * 1024)

static uint64_t seed;

static void reseed(void) {
	do {
		if (getentropy(&seed, sizeof seed) != 0) abort();
	} while (seed == 0);
}

// js_random is Math.random: xorshift64*, as QuickJS has it, by a seed that can be set.
static JSValue js_random(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	uint64_t v = seed * 0x2545f4914f6cdd1d;
	return JS_NewFloat64(ctx, (double)(v >> 11) * 0x1p-53);
}

// slurp reads a stream to its end; NULL: it fails, or there is no memory.
static char *slurp(FILE *f, size_t *n) {
	size_t room = 1 << 16, have = 0, got;
	char *b = malloc(room + 1);
	while (b && (got = fread(b + have, 1, room - have, f)) > 0) {
		have += got;
		if (have < room) continue;
		char *more = realloc(b, (room *= 2) + 1);
		if (!more) free(b);
		b = more;
	}
	if (b && ferror(f)) {
		free(b);
		b = NULL;
	}
	if (b) b[have] = 0;
	*n = have;
	return b;
}

// fail throws an Error with the name of errno as its code.
static JSValue fail(JSContext *ctx, const char *what, const char *path) {
	int code = errno;
	JSValue e = JS_NewError(ctx);
	char text[512];
	snprintf(text, sizeof text, "%s %s: %s", what, path, strerror(code));
	JS_DefinePropertyValueStr(ctx, e, "message", JS_NewString(ctx, text), JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
	const char *name = code == ENOENT ? "ENOENT" : code == EEXIST ? "EEXIST" : code == EROFS ? "EROFS" :
		code == EACCES ? "EACCES" : code == ENOTEMPTY ? "ENOTEMPTY" : code == EISDIR ? "EISDIR" :
		code == ENOTDIR ? "ENOTDIR" : code == ENOSPC ? "ENOSPC" : "EIO";
	JS_DefinePropertyValueStr(ctx, e, "code", JS_NewString(ctx, name), JS_PROP_C_W_E);
	return JS_Throw(ctx, e);
}

static JSValue js_read_file(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	const char *path = JS_ToCString(ctx, argv[0]);
	if (!path) return JS_EXCEPTION;
	size_t n;
	FILE *f = fopen(path, "r");
	char *b = f ? slurp(f, &n) : NULL;
	JSValue v = b ? JS_NewStringLen(ctx, b, n) : fail(ctx, "read", path);
	if (f) fclose(f);
	free(b);
	JS_FreeCString(ctx, path);
	return v;
}

// put writes a text to a file that is opened in that mode.
static JSValue put(JSContext *ctx, JSValueConst *argv, const char *mode, const char *what) {
	size_t n;
	const char *path = JS_ToCString(ctx, argv[0]);
	const char *text = path ? JS_ToCStringLen(ctx, &n, argv[1]) : NULL;
	JSValue v = text ? JS_UNDEFINED : JS_EXCEPTION;
	if (text) {
		FILE *f = fopen(path, mode);
		if (!f || fwrite(text, 1, n, f) != n) v = fail(ctx, what, path);
		if (f && fclose(f) != 0 && !JS_IsException(v)) v = fail(ctx, what, path);
	}
	JS_FreeCString(ctx, text);
	JS_FreeCString(ctx, path);
	return v;
}

static JSValue js_write_file(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	return put(ctx, argv, "w", "write");
}

static JSValue js_append_file(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	return put(ctx, argv, "a", "append");
}

static JSValue js_read_dir(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	const char *path = JS_ToCString(ctx, argv[0]);
	if (!path) return JS_EXCEPTION;
	DIR *d = opendir(path);
	JSValue list = d ? JS_NewArray(ctx) : fail(ctx, "list", path);
	uint32_t n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			JS_SetPropertyUint32(ctx, list, n++, JS_NewString(ctx, e->d_name));
	if (d) closedir(d);
	JS_FreeCString(ctx, path);
	return list;
}

static JSValue js_stat(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	const char *path = JS_ToCString(ctx, argv[0]);
	if (!path) return JS_EXCEPTION;
	struct stat s;
	JSValue v;
	if (stat(path, &s) != 0) {
		v = fail(ctx, "stat", path);
	} else {
		v = JS_NewObject(ctx);
		JS_SetPropertyStr(ctx, v, "size", JS_NewInt64(ctx, s.st_size));
		JS_SetPropertyStr(ctx, v, "directory", JS_NewBool(ctx, S_ISDIR(s.st_mode)));
		JS_SetPropertyStr(ctx, v, "modified", JS_NewInt64(ctx, (int64_t)s.st_mtim.tv_sec * 1000 + s.st_mtim.tv_nsec / 1000000));
	}
	JS_FreeCString(ctx, path);
	return v;
}

// one does something to a path.
static JSValue one(JSContext *ctx, JSValueConst path, int (*does)(const char *), const char *what) {
	const char *p = JS_ToCString(ctx, path);
	if (!p) return JS_EXCEPTION;
	JSValue v = does(p) == 0 ? JS_UNDEFINED : fail(ctx, what, p);
	JS_FreeCString(ctx, p);
	return v;
}

static int make_dir(const char *path) { return mkdir(path, 0755); }

static JSValue js_mkdir(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	return one(ctx, argv[0], make_dir, "mkdir");
}

static JSValue js_remove(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	return one(ctx, argv[0], remove, "remove");
}

static JSValue js_rename(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	const char *from = JS_ToCString(ctx, argv[0]), *to = from ? JS_ToCString(ctx, argv[1]) : NULL;
	JSValue v = !to ? JS_EXCEPTION : rename(from, to) == 0 ? JS_UNDEFINED : fail(ctx, "rename", from);
	JS_FreeCString(ctx, to);
	JS_FreeCString(ctx, from);
	return v;
}

// js_log writes its arguments to the log, a line.
static JSValue js_log(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
	for (int i = 0; i < argc; i++) {
		const char *s = JS_ToCString(ctx, argv[i]);
		if (!s) return JS_EXCEPTION;
		fprintf(stderr, "%s%s", i ? " " : "", s);
		JS_FreeCString(ctx, s);
	}
	fputc('\n', stderr);
	return JS_UNDEFINED;
}

static void add(JSContext *ctx, JSValueConst o, const char *name, JSCFunction *f, int n) {
	JS_SetPropertyStr(ctx, o, name, JS_NewCFunction(ctx, f, name, n));
}

static void globals(JSContext *ctx) {
	JSValue g = JS_GetGlobalObject(ctx);
	JSValue math = JS_GetPropertyStr(ctx, g, "Math");
	add(ctx, math, "random", js_random, 0);
	JS_FreeValue(ctx, math);
	JSValue console = JS_NewObject(ctx);
	add(ctx, console, "log", js_log, 1);
	add(ctx, console, "info", js_log, 1);
	add(ctx, console, "warn", js_log, 1);
	add(ctx, console, "error", js_log, 1);
	JS_SetPropertyStr(ctx, g, "console", console);
	JSValue files = JS_NewObject(ctx);
	add(ctx, files, "read", js_read_file, 1);
	add(ctx, files, "write", js_write_file, 2);
	add(ctx, files, "append", js_append_file, 2);
	add(ctx, files, "list", js_read_dir, 1);
	add(ctx, files, "stat", js_stat, 1);
	add(ctx, files, "mkdir", js_mkdir, 1);
	add(ctx, files, "remove", js_remove, 1);
	add(ctx, files, "rename", js_rename, 2);
	JS_SetPropertyStr(ctx, g, "files", files);
	JS_FreeValue(ctx, g);
}

// compile reads and compiles a module; NULL: there is an exception.
static JSModuleDef *compile(JSContext *ctx, const char *path, void *opaque, JSValueConst attributes) {
	size_t n;
	FILE *f = fopen(path, "r");
	char *b = f ? slurp(f, &n) : NULL;
	if (f) fclose(f);
	if (!b) {
		fail(ctx, "import", path);
		return NULL;
	}
	JSValue v = JS_Eval(ctx, b, n, path, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	free(b);
	if (JS_IsException(v)) return NULL;
	JSModuleDef *m = JS_VALUE_GET_PTR(v);
	JS_FreeValue(ctx, v);
	return m;
}

// settled runs jobs until a promise is settled and returns its value, or throws its
// reason. It frees v, which may be no promise.
static JSValue settled(JSContext *ctx, JSValue v) {
	JSContext *other;
	if (JS_IsException(v)) return v;
	while (JS_PromiseState(ctx, v) == JS_PROMISE_PENDING) {
		int ran = JS_ExecutePendingJob(JS_GetRuntime(ctx), &other);
		if (ran > 0) continue;
		JS_FreeValue(ctx, v);
		return ran < 0 ? JS_EXCEPTION : JS_ThrowTypeError(ctx, "promise is never settled");
	}
	JSPromiseStateEnum state = JS_PromiseState(ctx, v);
	if (state != JS_PROMISE_FULFILLED && state != JS_PROMISE_REJECTED) return v;
	JSValue r = JS_PromiseResult(ctx, v);
	JS_FreeValue(ctx, v);
	return state == JS_PROMISE_FULFILLED ? r : JS_Throw(ctx, r);
}

// report tells the client of the exception, and the log where it was.
static int report(JSContext *ctx) {
	JSValue e = JS_GetException(ctx);
	const char *s = JS_ToCString(ctx, e);
	fprintf(stdout, "%s", s ? s : "exception");
	JS_FreeCString(ctx, s);
	JSValue stack = JS_IsObject(e) ? JS_GetPropertyStr(ctx, e, "stack") : JS_UNDEFINED;
	const char *at = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
	if (at) fprintf(stderr, "%s", at);
	JS_FreeCString(ctx, at);
	return 1;
}

// answer writes what a tool returned.
static int answer(JSContext *ctx, JSValueConst v) {
	JSValue out = JS_DupValue(ctx, v);
	if (!JS_IsString(v) && !JS_IsUndefined(v)) {
		JSValue content = JS_IsObject(v) ? JS_GetPropertyStr(ctx, v, "content") : JS_UNDEFINED;
		if (!JS_IsArray(content)) {
			JSValue text = JS_NewObject(ctx), list = JS_NewArray(ctx), result = JS_NewObject(ctx);
			JS_SetPropertyStr(ctx, text, "type", JS_NewString(ctx, "text"));
			JS_SetPropertyStr(ctx, text, "text", JS_JSONStringify(ctx, v, JS_UNDEFINED, JS_UNDEFINED));
			JS_SetPropertyUint32(ctx, list, 0, text);
			JS_SetPropertyStr(ctx, result, "content", list);
			if (JS_IsObject(v) && !JS_IsArray(v)) JS_SetPropertyStr(ctx, result, "structuredContent", JS_DupValue(ctx, v));
			out = result;
		}
		out = JS_JSONStringify(ctx, out, JS_UNDEFINED, JS_UNDEFINED);
		if (JS_IsException(out)) return report(ctx);
	}
	size_t n = 0;
	const char *s = JS_IsString(out) ? JS_ToCStringLen(ctx, &n, out) : NULL;
	if (s) fwrite(s, 1, n, stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}

// serve reads the request and has its tool answer.
static int serve(JSContext *ctx, JSValueConst tools) {
	size_t n;
	char *b = slurp(stdin, &n);
	reseed(); // what came before is the same in all calls that begin at that read
	JSValue request = b ? JS_ParseJSON(ctx, b, n, "request") : JS_ThrowOutOfMemory(ctx);
	if (JS_IsException(request)) return report(ctx);
	JSValue name = JS_GetPropertyStr(ctx, request, "tool");
	JSAtom atom = JS_ValueToAtom(ctx, name);
	JSValue tool = JS_GetProperty(ctx, tools, atom);
	if (!JS_IsFunction(ctx, tool)) {
		JS_ThrowTypeError(ctx, "the default export of the module has no function of the tool's name");
		return report(ctx);
	}
	JSValue args[] = {JS_GetPropertyStr(ctx, request, "arguments"), JS_GetPropertyStr(ctx, request, "context")};
	JSValue v = settled(ctx, JS_Call(ctx, tool, tools, 2, args));
	return JS_IsException(v) ? report(ctx) : answer(ctx, v);
}

int main(int argc, char **argv) {
	if (argc < 2) {
		fprintf(stderr, "usage: qjs /package/main.js\n");
		return 2;
	}
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = rt ? JS_NewContext(rt) : NULL;
	if (!ctx) return 2;
	JS_SetMaxStackSize(rt, STACK);
	JS_SetModuleLoaderFunc2(rt, NULL, compile, NULL, NULL);
	reseed();
	globals(ctx);
	JSModuleDef *m = compile(ctx, argv[1], NULL, JS_UNDEFINED);
	if (!m) return report(ctx);
	JSValue done = settled(ctx, JS_EvalFunction(ctx, JS_DupValue(ctx, JS_MKPTR(JS_TAG_MODULE, m))));
	if (JS_IsException(done)) return report(ctx);
	JSValue tools = JS_GetPropertyStr(ctx, JS_GetModuleNamespace(ctx, m), "default");
	// Nothing is freed: the process ends.
	return serve(ctx, tools);
}
