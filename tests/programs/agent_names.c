/* agent_names.c - a program with functions of its own that are called like libevent's, zlib's and protobuf-c's.
 * Each counts its calls; the program calls each once, and nobody else should.  Between a line on stdin and the next
 * it is looked into.  "opened" loads the libraries of these names, too. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAMES(X) X(deflate) X(deflateInit2_) X(deflateEnd) X(inflate) X(inflateInit2_) X(inflateEnd) X(adler32) X(crc32) X(compress) \
	X(event_base_new) X(event_base_new_with_config) X(event_base_loop) X(event_new) X(event_add) X(event_free) \
	X(event_get_version_number) X(evbuffer_new) X(evbuffer_add) X(evbuffer_free) X(bufferevent_socket_new) \
	X(evutil_make_socket_nonblocking) X(evhttp_send_reply) X(protobuf_c_message_pack) X(protobuf_c_message_get_packed_size) \
	X(component_profiler_start_options) X(component_name)

#define DEFINE(name) \
	static int calls_##name; \
	int name(int, int); \
	__attribute__((noinline)) int name(int a, int b) { calls_##name++; return a - b; }
NAMES(DEFINE)

int
main(int argc, char **argv)
{
	char line[16];

	if (argc > 1 && !strcmp(argv[1], "opened") &&
	    (!dlopen("libevent-2.1.so.7", RTLD_NOW | RTLD_GLOBAL) || !dlopen("libz.so.1", RTLD_NOW | RTLD_GLOBAL)))
		puts("none opened");
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
#define CALL(name) if (name(5, 2) != 3 || calls_##name != 1 || dlsym(RTLD_DEFAULT, #name) != (void *)name) printf(#name " was called\n");
	NAMES(CALL)
	for (const char *const *l = (const char *const[]){ "libevent_core-2.1.so.7", "libz.so.1", "libprotobuf-c.so.1", "libcomponent.so.0", NULL }; *l; l++)
		if (argc < 2 && dlopen(*l, RTLD_LAZY | RTLD_NOLOAD))
			printf("%s was loaded\n", *l);
	puts("end");
	return 0;
}
