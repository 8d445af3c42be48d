// stress_throw.cc - exceptions in flight, through frames that clean up, out of
// threads, and operator new in its shapes.
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// The C parts' header uses C's atomics.
extern "C" {
void     stress_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t stress_random(uint64_t *state);
void     stress_burn_us(int us);
void     stress_throw(uint64_t *random);
void     stress_operators(uint64_t *random);
}

namespace
{

struct counted {
	explicit counted(int &n) : n_(n), text_(100 + n, 'x') { n_++; }
	~counted()
	{
		n_--;
		if (text_.back() != 'x')
			stress_wrong("a string is not what it was during an exception");
	}
	int        &n_;
	std::string text_;
};

__attribute__((noinline)) void
go_down(int depth, int &alive, uint64_t *random)
{
	counted here(alive);

	if (depth == 0) {
		if (stress_random(random) % 2)
			throw std::runtime_error(std::string(200, 'e'));
		throw static_cast<int>(42);
	}
	try {
		go_down(depth - 1, alive, random);
	} catch (const std::runtime_error &) {
		if (depth % 5 == 0)
			throw; // the same one again
		if (depth % 7 == 0)
			throw std::logic_error("another");
		throw;
	}
}

struct alignas(64) wide {
	unsigned char bytes[192];
};

} // namespace

void
stress_throw(uint64_t *random)
{
	std::exception_ptr carried;

	for (int i = 0; i < 10; i++) {
		int alive = 0, caught = 0;

		try {
			go_down(3 + static_cast<int>(stress_random(random) % 20), alive, random);
		} catch (const std::exception &e) {
			caught = e.what()[0] == 'e' || e.what()[0] == 'a';
		} catch (int n) {
			caught = n == 42;
		}
		if (!caught || alive)
			stress_wrong("an exception: caught %d, %d objects left", caught, alive);
		stress_burn_us(50);
	}
	std::thread([&] {
		try {
			throw std::runtime_error("carried");
		} catch (...) {
			carried = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::runtime_error &e) {
		if (std::string(e.what()) != "carried")
			stress_wrong("an exception of another thread is not what it was");
	}
}

void
stress_operators(uint64_t *random)
{
	std::vector<std::unique_ptr<std::string>> strings;

	for (int i = 0; i < 200; i++) {
		size_t n = 1 + stress_random(random) % 2000;
		strings.push_back(std::make_unique<std::string>(n, static_cast<char>('a' + n % 26)));
		auto w = std::make_unique<wide>();
		if (reinterpret_cast<uintptr_t>(w.get()) % 64)
			stress_wrong("operator new: %p is not aligned to 64", static_cast<void *>(w.get()));
		for (auto &b : w->bytes)
			b = 0x77;
		std::unique_ptr<char[]> c(new (std::nothrow) char[n]);
		if (!c)
			stress_wrong("operator new[] has no memory");
		if (i % 3 == 0)
			strings.erase(strings.begin() + static_cast<long>(stress_random(random) % strings.size()));
	}
	for (auto &s : strings)
		if (*s != std::string(s->size(), static_cast<char>('a' + s->size() % 26)))
			stress_wrong("a string of %zu bytes is not what it was", s->size());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they end the program
	bool refused = false;
	try {
		std::vector<char> huge(static_cast<size_t>(1) << 62);
	} catch (const std::bad_alloc &) {
		refused = true;
	}
	if (!refused)
		stress_wrong("4 EiB were allocated");
#endif
}
