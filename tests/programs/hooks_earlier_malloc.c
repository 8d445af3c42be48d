/*
 * hooks_earlier_malloc.c - a library whose malloc comes before ours.
 *
 * As it is: it watches, and calls the next malloc, as heaptrack and libmemusage do.
 * -DALLOCATOR: it is one, and lacks reallocarray, memalign and the like.  It ends the process
 * with status 9 when it gets a block that is not its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifdef ALLOCATOR

struct head {
	size_t size, unused;
};

static char            room[64 << 20] __attribute__((aligned(4096)));
static size_t          used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *
take(size_t align, size_t size)
{
	struct head *h;
	size_t       at;

	while (pthread_mutex_trylock(&lock))
		;
	at = (used + sizeof(*h) + align - 1) / align * align;
	if (size > sizeof(room) || at + size > sizeof(room)) {
		pthread_mutex_unlock(&lock);
		errno = ENOMEM;
		return NULL;
	}
	used = at + size;
	h = (struct head *)(room + at) - 1;
	h->size = size;
	pthread_mutex_unlock(&lock);
	return room + at;
}

void *
malloc(size_t size)
{
	return take(16, size);
}

void *
calloc(size_t count, size_t size)
{
	return take(16, count * size);
}

int
posix_memalign(void **ret, size_t align, size_t size)
{
	void *block = take(align, size);

	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

void
free(void *block)
{
	if (block && (uintptr_t)block - (uintptr_t)room >= sizeof(room))
		_exit(9);
}

void *
realloc(void *block, size_t size)
{
	void  *moved = take(16, size);
	size_t keep;

	free(block);
	if (moved && block) {
		keep = ((struct head *)block - 1)->size;
		memcpy(moved, block, keep < size ? keep : size);
	}
	return moved;
}

#else

static char   early[65536] __attribute__((aligned(16)));
static size_t used;

static void *
next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* What dlsym() itself takes for its messages. */
static void *
take(size_t size)
{
	void *block = early + used;

	used += (size + 15) & ~(size_t)15;
	return used > sizeof(early) ? NULL : block;
}

#define NEXT(name)                                                                  \
	static __thread volatile int inside; /* dlsym() is said not to call back */ \
	static __typeof__(&(name)) f;                                               \
	if (!f && !inside) {                                                        \
		inside = 1;                                                         \
		f = (__typeof__(&(name)))next(#name);                               \
		inside = 0;                                                         \
	}

void *
malloc(size_t size)
{
	NEXT(malloc)
	return f ? f(size) : take(size);
}

void *
calloc(size_t count, size_t size)
{
	NEXT(calloc)
	return f ? f(count, size) : take(count * size);
}

void *
realloc(void *block, size_t size)
{
	NEXT(realloc)
	return f ? f(block, size) : take(size);
}

void
free(void *block)
{
	NEXT(free)
	if (f && (uintptr_t)block - (uintptr_t)early >= sizeof(early))
		f(block);
}

#endif
