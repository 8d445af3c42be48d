/*
 * hooks_throws.cc - exceptions, and every kind of new and delete, while each
 * allocation is a sample.  A program, or with -DPLUGIN a library for hooks_plugin_host.c.
 */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int throws_run(int (*set_rate)(uint64_t));

namespace {

struct alignas(128) wide {
	char data[256];
};

int handler_calls;

void
handler()
{
	handler_calls++;
	std::set_new_handler(nullptr);
}

__attribute__((noinline)) int
deep(int n, std::vector<std::string> &v)
{
	std::string s(static_cast<size_t>(n) * 10 + 40, 'x');

	v.push_back(s);
	if (n == 0)
		throw std::runtime_error("from the bottom of the stack, " + s);
	return deep(n - 1, v) + 1;
}

int
all_kinds()
{
	int *a = new int(5);
	int *b = new int[100];
	wide *c = new wide;
	wide *d = new wide[3];
	int *e = new (std::nothrow) int[1000];
	std::map<int, std::string> m;

	if (reinterpret_cast<uintptr_t>(c) % 128 || reinterpret_cast<uintptr_t>(d) % 128)
		return 1;
	std::memset(b, 1, 400);
	for (int i = 0; i < 500; i++)
		m[i] = std::string(static_cast<size_t>(i), 'y');
	delete a;
	delete[] b;
	delete c;
	delete[] d;
	delete[] e;
	::operator delete(::operator new(100), static_cast<size_t>(100));
	::operator delete(nullptr);
	return 0;
}

int
out_of_memory()
{
	volatile size_t too_much = static_cast<size_t>(PTRDIFF_MAX) - 4096;

	std::set_new_handler(handler);
	try {
		(void)::operator new(too_much);
		return 2;
	} catch (const std::bad_alloc &) {
	}
	if (handler_calls == 0)
		return 3;
	try {
		(void)::operator new(too_much, std::align_val_t(64));
		return 4;
	} catch (const std::bad_alloc &) {
	}
	return ::operator new(too_much, std::nothrow) == nullptr ? 0 : 5;
}

} // namespace

extern "C" int
throws_run(int (*set_rate)(uint64_t))
{
	for (int i = 0; i < 200; i++) {
		std::vector<std::string> v;
		bool caught = false;
		int r;

		set_rate(i % 3 ? 1 : 0);
		handler_calls = 0;
		try {
			deep(20, v);
		} catch (const std::runtime_error &e) {
			caught = std::strstr(e.what(), "bottom") != nullptr;
		}
		if (!caught || v.size() != 21)
			return 10;
		r = all_kinds();
		if (r == 0 && i % 10 == 0)
			r = out_of_memory();
		if (r)
			return r;
	}
	set_rate(0);
	return 0;
}

#ifndef PLUGIN
int
main()
{
	void *symbol = dlsym(RTLD_DEFAULT, "component_profiler_set_heap_rate");
	int r = symbol ? throws_run(reinterpret_cast<int (*)(uint64_t)>(symbol)) : 99;

	std::puts(r ? "wrong" : "fine");
	return r;
}
#endif
