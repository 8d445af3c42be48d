// mix_throw.cc - exceptions in flight: what is called while the stack is
// unwound, in destructors and handlers, stands on frames of the unwinder itself.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "mix.h"

namespace
{

int
compare(const void *a, const void *b)
{
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void
some_work(int seed)
{
	int numbers[40];

	for (int i = 0; i < 40; i++)
		numbers[i] = (i * 7919 + seed) % 101;
	qsort(numbers, 40, sizeof(numbers[0]), compare);
}

struct cleans_up {
	explicit cleans_up(int n) : n_(n) {}
	~cleans_up() { some_work(n_); }
	int n_;
};

__attribute__((noinline)) void
go_down(int depth)
{
	cleans_up here(depth);

	if (depth == 0)
		throw std::runtime_error(std::string(100, 'e'));
	if (depth % 4 != 0) {
		go_down(depth - 1);
		__asm__ volatile("" ::: "memory");
		return;
	}
	try {
		go_down(depth - 1);
	} catch (const std::logic_error &) {
		abort();
	} catch (const std::runtime_error &) {
		some_work(depth);
		if (depth % 8 == 0)
			throw; // the same one again
		throw std::runtime_error("another");
	}
}

} // namespace

void
mix_throw(void)
{
	for (int depth = 1; depth < 20; depth += 3) {
		try {
			go_down(depth);
		} catch (const std::exception &e) {
			some_work(e.what()[0]);
		}
	}
}
