/*
 * profiler.h - the profiling server of a process: one call, and curl or
 * "go tool pprof" can look into it.
 *
 *     component_profiler_start("127.0.0.1:6060");
 *     ... curl http://127.0.0.1:6060/debug/pprof/ ...
 *     component_profiler_stop();
 *
 * The server has a thread and an event loop of its own, so it answers while the
 * program's loop hangs.  It installs no signal handler before a CPU profile or a dump
 * of threads is asked for, or, with the hooks, a thread blocks all signals: the profiler's is
 * let through.  It starts no child process, and prints nothing: what there is to say goes
 * to options.log.  Linked with -lcomponent_hooks the heap is sampled as well;
 * without, the heap profiles are valid and empty, and the index page says why.
 *
 * None of these functions is a cancellation point.
 */
#ifndef COMPONENT_PROFILER_H
#define COMPONENT_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/duration.h>
#include <component/each.h>
#include <component/error.h>
#include <component/export.h>
#include <component/labels.h>
#include <component/log.h>

COMPONENT_BEGIN

enum component_unwinder {
	COMPONENT_UNWINDER_AUTO,
	COMPONENT_UNWINDER_FRAME_POINTER,
	COMPONENT_UNWINDER_TABLES,
	COMPONENT_UNWINDER_LIBUNWIND, /* CPU profiles, dumps over HTTP; loads libunwind8 when started */
};

/* A page of the program's own: what is asked, and what it is answered. */
struct component_profiler_page {
	const char *method; /* one of those in the list; HEAD comes as GET */
	const char *path;
	const char *accept; /* the header, "" where there is none */
	const char *body;   /* NUL at the end */
	int         status; /* of HTTP; 200 when it is asked */
	const char *type;   /* "application/json"; NULL: text */
	char       *text;   /* from malloc(), and then the caller's; NULL: out of memory */
};
/* Answers a page.  On a thread of the server's that may block for a second or so; several at once. */
typedef void component_profiler_page_fn(void *arg, struct component_profiler_page *page);

/*
 * Everything the server can be told; start with COMPONENT_PROFILER_OPTIONS_INIT.
 * Strings and lists are copied.  The first field is the struct's size, which lets a
 * newer library serve a program built with this header; so new ones go to the end.
 */
struct component_profiler_options {
	size_t             size;
	const char        *address;           /* "127.0.0.1:6060", ":6060", "unix:/path", ...; NULL:
	                                       * 127.0.0.1:6060; "0": the debug socket alone, or
	                                       * what is mounted, see evhttp.h */
	const char        *debug_socket_path; /* one more listener, mode 0600, asks for no token; NULL or "": none */
	const char        *token_file;        /* who asks must know what is in it, but at a unix socket whose file we make; NULL or "": no token */
	const char        *port_file;         /* gets "HOST:PORT\n" once we listen; NULL or "": none */
	const char *const *allowed_hosts;     /* globs of Host on loopback addresses, NULL at the end; or NULL */
	const char *const *redact;            /* options whose values cmdline hides, NULL at the end; or NULL */
	const char        *how_named;         /* what named the address, for messages; or NULL */
	int64_t            max_seconds;       /* longest profile, 7200 */
	int64_t            max_requests;      /* profiles at the same time, 64 */
	uint64_t           memory_bytes;      /* for stacks, 32 MiB */
	uint64_t           heap_rate_bytes;   /* mean bytes between heap samples, 512 KiB; 0 is off */
	enum component_unwinder unwinder;     /* how stacks are walked */
	component_log_fn  *log;               /* called on the server's threads; must not call back into
	                                       * this header; NULL: silent */
	void              *log_arg;
	component_profiler_page_fn *page;     /* answers pages; or NULL */
	void              *page_arg;
	uint64_t           symbol_memory_bytes; /* for names and lines of one request, 64 MiB */
	int64_t            mutex_fraction;      /* see component_profiler_set_mutex_fraction(); 0 is off */
	int64_t            block_rate_ns;       /* see component_profiler_set_block_rate(); 0 is off */
	const char        *record_id;           /* has a record written, which componentctl finds by this name
	                                         * (letters, digits, '-', '_', '.'); NULL or "": none */
	int64_t            record_port;         /* the program's own port, for that record; 0: none */
	int64_t            record_parent;       /* PID of the process that the record's name stands for, whose child
	                                         * this one is; 0: this one */
	const char        *viewer_file;         /* viewer.html.gz, which a browser is given; NULL or "": as installed */
	const char *const *pages;               /* more pages, by the rules of profiles: "GET, HEAD /statusz", NULL at
	                                         * the end; or NULL */
};

#define COMPONENT_PROFILER_OPTIONS_INIT COMPONENT_SIZED_(component_profiler_options, \
	.max_seconds = 7200,                                                        \
	.max_requests = 64,                                                         \
	.memory_bytes = 32ULL << 20,                                                \
	.heap_rate_bytes = 512ULL << 10,                                            \
	.symbol_memory_bytes = 64ULL << 20)

/*
 * component_profiler_start - serve profiles of this process at an address
 *
 * Binds, starts the server's thread and switches heap sampling on.  When it returns
 * 0 the first request is answered.  May be called at any time: in main(), after
 * daemon(3), after dropping privileges, with any event loop or none.
 *
 *   address  HOST:PORT, :PORT, [IPV6]:PORT, unix:/path, fd:NAME; NULL is 127.0.0.1:6060
 *
 *   returns  0; or, with nothing started and nothing changed,
 *              -EALREADY    it is running
 *              -EINVAL      the address or an option makes no sense
 *              -EADDRINUSE  and every other error of bind(2)
 *              -EMFILE      too few descriptors are left
 *              -ENOTSUP     another object of the process has taken over functions of
 *                           libevent or zlib; err names it
 *              -EPERM       the token file may be written by others
 *            or what opening the token file or writing the port file gave
 *
 *   owns     everything is copied
 *   threads  any; calls wait for each other
 *   signals  not from a handler; the server's threads block all of them
 *   fork     a child has no server, no thread and no descriptor of it until
 *            component_after_fork()
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_start(const char *address);
COMPONENT_API int component_profiler_start_options(const struct component_profiler_options *options,
	struct component_error *err);

/*
 * component_profiler_stop - end the server and all it has switched on
 *
 * Open CPU profiles end early and are delivered, whole if that takes no more than 5 seconds; then
 * clients are cut off.  Afterwards no thread, timer, listener or descriptor is
 * left.  May be started again.
 *
 *   returns  0, also when nothing ran
 *   threads  any but the server's own (so not from options.log)
 *   signals  not from a handler
 *   fork     in a child it makes component_after_fork() do nothing
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_stop(void);

/* component_profiler_running - does this process have a server now?  Any thread, signal-safe. */
COMPONENT_API bool component_profiler_running(void);

/*
 * component_profiler_url - where, as "http://127.0.0.1:6060/debug/pprof/"
 *
 * Of the first listener, with the port that port 0 became; "" when nothing runs.
 *
 *   buf, size  gets the text, cut to size with its NUL; 600 bytes are always enough
 *   threads    any
 *   signals    not from a handler
 *   source     profiler/serve/profiler.c
 */
COMPONENT_API void component_profiler_url(char *buf, size_t size);

/*
 * component_profiler_set_cpu_rate - samples per second of CPU time, from now on
 *
 * CPU seconds, not wall seconds: four busy threads at 100 Hz give 400 samples a
 * second.  Profiles that are being collected keep their rate, and so do those that
 * begin before the last of these has ended.
 *
 *   hz       1 to 1000; 0 is the default, 100.  The kernel's tick (CONFIG_HZ) is the
 *            limit of what is seen apart; above it samples weigh more instead
 *   returns  0, or -EINVAL: hz is above 1000
 *   threads  any
 *   signals  safe in a handler
 *   source   profiler/collect/cpu/cpu.c
 */
COMPONENT_API int component_profiler_set_cpu_rate(unsigned hz);

/*
 * component_profiler_set_heap_rate - mean bytes between heap samples, from now on
 *
 * A call of this, or of the next two, before component_profiler_start() is meant for that server,
 * too, unless an option of the start says otherwise.  The stop switches off what was set.
 *
 *   bytes    0 switches heap sampling off
 *   returns  0 or a negative errno, when sampling cannot be had (the index says why)
 *   threads  any
 *   signals  not from a handler
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_set_heap_rate(uint64_t bytes);

/*
 * component_profiler_set_mutex_fraction - for the mutex profile, from now on
 *
 * One of so many unlocks that others were waiting for is sampled, on average, and stands
 * for all; the stack that unlocked is blamed for the time they waited.  As Go's
 * runtime.SetMutexProfileFraction().  What was counted stays.
 *
 *   fraction  1: all, 0: off
 *   returns   0 or a negative errno, when locks cannot be seen (the index says why)
 *   threads   any
 *   signals   not from a handler
 *   fork      a child is off
 *   source    profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_set_mutex_fraction(int64_t fraction);

/*
 * component_profiler_set_block_rate - for the block profile, from now on
 *
 * Waits of rate_ns and longer are all recorded; shorter ones as often as their length is
 * a part of it, and count for as many more.  As Go's runtime.SetBlockProfileRate().  What
 * was counted stays.
 *
 *   rate_ns  nanoseconds, as COMPONENT_MICROSECONDS(10); 1: all, 0: off
 *   returns  0 or a negative errno, when waits cannot be seen (the index says why)
 *   threads  any
 *   signals  not from a handler
 *   fork     a child is off
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_set_block_rate(int64_t rate_ns);

/*
 * component_profiler_change - other addresses, limits, hosts and token for the server that runs
 *
 * Takes what options say, and reads the token file; redact, unwinder, log, page, pages and
 * the sampling rates stay as they are.  Windows go on, and are answered where they were asked
 * for.  In a worker, addresses are those of its parent, and it has a place of its own beside
 * them, as component_after_fork_worker() says: the same words leave it where it is.
 *
 *   options  copied
 *   returns  0; -ENOTCONN: none runs; -EBADF, -ECANCELED: the program has closed its
 *            descriptors, start another; else a negative errno, a sentence in err (nullable),
 *            and nothing has changed
 *   threads  any
 *   signals  not from a handler
 *   fork     a child is off
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_change(const struct component_profiler_options *options,
	struct component_error *err);

/*
 * component_profiler_reload - read the token file again
 *
 *   returns  0, also without a token file; else a negative errno, a sentence in err
 *            (nullable), and the token that was known stays
 *   threads  any
 *   signals  not from a handler
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_reload(struct component_error *err);

/*
 * component_profiler_check_token_file - would a server take this token file?
 *
 *   path     NULL or "": none, which is taken
 *   returns  0, or a negative errno and a sentence in err (nullable); nothing changes
 *   threads  any
 *   signals  not from a handler
 *   fork     any process
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_profiler_check_token_file(const char *path, struct component_error *err);

/*
 * component_after_fork - in a child, bring back what ran in the parent
 *
 * With the same options.  For daemon(3); a worker whose parent goes on serving calls
 * component_after_fork_worker().  A port that the parent still holds is tried for 2 seconds,
 * since a parent that makes a daemon of itself is about to be gone.
 *
 *   returns  0, also when nothing ran in the parent or it was called already; else as
 *            component_profiler_start(), and it may be called again
 *   threads  any; at best the one that forked, before others are made
 *   signals  not from a handler
 *   fork     nothing happens by itself: a child that does not call it is off
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_after_fork(void);

/*
 * component_after_fork_worker - in a worker, one of several that serve beside their parent
 *
 * As component_after_fork(), and at once: the parent keeps its address.  The worker's own is
 * that address with its number in the place of "%p" ("unix:/run/x.%p.sock"); without a "%p" a
 * port becomes any free one of the same host, and a unix socket's path, of the debug socket
 * too, gets ".NUMBER" at its end.  Where the parent serves at a socket it was given ("fd:3"),
 * the worker has any free port of 127.0.0.1.  It writes no port file.  The index of
 * each of these processes names all of them and where they serve.
 *
 *   returns  0, also when nothing ran in the parent; else as component_after_fork()
 *   threads  at best the one that forked, before others are made and before privileges, root
 *            or user are given up: a socket's file belongs to who makes it
 *   signals  not from a handler
 *   fork     see component_after_fork()
 *   source   profiler/serve/profiler.c
 */
COMPONENT_API int component_after_fork_worker(void);

/*
 * Profiles of the program's own, as pprof.NewProfile: what is there now, by the call
 * stack that added it.  A file that is never closed, a job that never ends:
 *
 *     component_profile_new("connections", &connections, NULL);
 *     component_profile_add(connections, c, 0);       when it opens
 *     component_profile_remove(connections, c);       when it closes
 *     go tool pprof http://localhost:6060/debug/pprof/connections
 */
struct component_profile;

/*
 * component_profile_new - make a profile, served as /debug/pprof/NAME
 *
 * With the server running or not; it stays until the process ends.
 *
 *   name     1 to 63 letters, digits, '.', '_', '-'; copied
 *
 *   returns  0; or, with nothing changed and a sentence in err (nullable),
 *              -EINVAL  the name cannot be had
 *              -EEXIST  there is one of that name: component_profile_lookup() has it, if it
 *                       is the program's own and none of the library's, as "heap"
 *              -ENOSPC  there are 64 already
 *
 *   owns     *ret_profile is the library's
 *   threads  any
 *   signals  not from a handler
 *   fork     a child has it with all its values
 *   source   profiler/collect/custom/custom.c
 */
COMPONENT_API int component_profile_new(const char *name, struct component_profile **ret_profile,
	struct component_error *err);

/* component_profile_lookup - the program's own profile of that name, or NULL, as for the
 * library's.  Threads, signals, fork and source as component_profile_new(). */
COMPONENT_API struct component_profile *component_profile_lookup(const char *name);

/*
 * component_profile_add - a value begins, here
 *
 * Costs a walk of the stack.  Stacks are whole once the profiling server runs; before,
 * code without frame pointers shows its first frames alone.
 *
 *   value    what tells it from others: an address, a number; never read through
 *   skip     0: the stack begins in the function that calls this one; 1: in its caller
 *
 *   returns  0; -EINVAL: profile is NULL; -EEXIST: it is there already; -ENOSPC: 1,048,576
 *            values are; -ENOMEM.  The last two are counted in a comment of the profile
 *   threads  any
 *   signals  not from a handler
 *   fork     see component_profile_new()
 *   source   profiler/collect/custom/custom.c
 */
COMPONENT_API int component_profile_add(struct component_profile *profile, const void *value, unsigned skip);

/* component_profile_remove - a value has ended.  0, or -ENOENT: it was not there.
 * The rest as component_profile_add(). */
COMPONENT_API int component_profile_remove(struct component_profile *profile, const void *value);

/* component_profile_count - how many values are there now; 0 if profile is NULL.  The rest as
 * above. */
COMPONENT_API size_t component_profile_count(const struct component_profile *profile);

/*
 * What component_profile_write() can be told; start with
 * COMPONENT_PROFILE_WRITE_OPTIONS_INIT.  The first field is the struct's size.
 */
struct component_profile_write_options {
	size_t      size;
	double      seconds; /* profile, fgprof: how long to look, 0 is 30; trace: likewise, 0 is 1, and a
	                      * fraction is fine; others: a delta of so long, 0: the whole */
	int         debug;   /* 1: Go's text, 2: of goroutine each thread by itself; 0: binary */
	bool        gc;      /* as ?gc=1 of heap */
	bool        without_own; /* goroutine: the library's own threads left out */
	const char *format;  /* "top", "folded", "svg", "html", "json"; goroutine and goroutineleak: "dump", too; trace:
	                      * "go1.19", "go1.22", "perfetto"; memory: "json"; NULL: by debug */
	struct component_error *err; /* gets a sentence when it fails; or NULL */
	bool        without_idle; /* fgprof: waiting left out */
	/* What of it formats "top", "folded" and "svg" show, as the parameters of these names do over HTTP
	 * (docs/profiling.md has the patterns); NULL, false and 0: all, as usual. */
	bool        cum;    /* top: sorted by cumulative values */
	unsigned    rows;   /* n: lines at most */
	const char *focus;  /* a pattern of at most 255 bytes: stacks that have it */
	const char *ignore; /* likewise: these not */
	const char *sample_index; /* "alloc_space" or a number: which of the values */
};

#define COMPONENT_PROFILE_WRITE_OPTIONS_INIT COMPONENT_SIZED_(component_profile_write_options, .seconds = 0)

/*
 * component_profile_write - a profile to a descriptor, the same bytes as over HTTP
 *
 *     int fd = open("cpu.pprof", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
 *     component_profile_write("profile", fd, NULL);      30 s of CPU time
 *
 * Works with the server running or not, and beside its requests.  Returns when all is
 * written: after the window of "profile", "fgprof" and "trace", or of a delta.  The work is done by
 * a thread of the library that ends before the return.
 *
 *   name     "profile", "fgprof", "trace", "heap", "allocs", "goroutine", "threads", "goroutineleak", "block",
 *            "mutex", "threadcreate", "mmap", "memory", or one of component_profile_new()
 *   fd       a file, pipe or socket that is open for writing; not closed.  A blocking one may
 *            keep the call for ever; one with O_NONBLOCK is waited for, 60 s without progress
 *            at most
 *   options  NULL: all as usual
 *
 *   returns  0; or, with a sentence in options->err,
 *              -ENOENT     there is no profile of that name
 *              -EINVAL     an option makes no sense for it, by the rules of the parameters
 *                          over HTTP; the longest time is that of the server, 7200 s without
 *              -ENODATA    it counts events that nobody has switched on yet: heap, allocs,
 *                          mutex and block have a rate, threadcreate and mmap need the server
 *              -EBADF      fd is not open for writing
 *              -EPIPE      who read it is gone; there is no SIGPIPE
 *              -ETIMEDOUT  O_NONBLOCK, and nobody reads
 *              -ENOMEM, -EAGAIN: no memory, no thread
 *            or what sampling or write(2) gave.  What was written until then stays
 *
 *   owns     name and options are the caller's
 *   threads  any; several at once.  A cancellation waits for the end of the call
 *   signals  not from a handler; those of the caller's thread are handled as ever
 *   fork     a child may call it for itself; one that is forked meanwhile has fd, as
 *            always, and nobody who writes to it
 *   source   profiler/serve/profile_write.c
 */
COMPONENT_API int component_profile_write(const char *name, int fd,
	const struct component_profile_write_options *options);

/*
 * component_dump_threads - every thread's stack, in the layout of Go's panics
 *
 * What goroutine?debug=2 answers, written to a descriptor; it is what SIGQUIT and SIGUSR2
 * print in component_main().  Works whether profiling is on or off, and while other
 * threads hold the locks of malloc or of the loader: it enters neither.  Gives up 5 s
 * after nobody reads any more.
 *
 *   returns  0; -EBUSY: another dump hangs; -EPIPE: who read it is gone, and there is no
 *            SIGPIPE; -ETIMEDOUT; or a negative errno
 *   threads  any
 *   signals  not from a handler
 *   fork     a child may call it for itself
 *   source   profiler/serve/dump_to_fd.c
 */
COMPONENT_API int component_dump_threads(int fd);

COMPONENT_END

#endif
