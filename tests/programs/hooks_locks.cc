/*
 * hooks_locks.cc - the locks of C++, which are those of pthreads, while every wait is
 * recorded.  Says "fine" and what the mutex and block profiles have counted.
 */
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#ifdef LINKED /* as in any program that uses the library: -Wl,--as-needed keeps it */
extern "C" int component_profiler_start(const char *address);
int (*uses)(const char *) = component_profiler_start;
#endif

namespace {

std::mutex              plain;
std::timed_mutex        timed;
std::recursive_mutex    recursive;
std::shared_mutex       shared;
std::condition_variable changed;
long                    turn, sum;

void
take_turns(long me, long n)
{
	for (long i = 0; i < n; i++) {
		std::unique_lock<std::mutex> l(plain);

		changed.wait(l, [&] { return turn % 2 == me; });
		turn++;
		changed.notify_all();
	}
}

void
add(long n)
{
	using namespace std::chrono_literals;

	for (long i = 0; i < n; i++) {
		std::lock_guard<std::recursive_mutex> a(recursive), b(recursive);

		while (!timed.try_lock_for(1h))
			;
		sum++;
		timed.unlock();
		if (i % 8)
			std::shared_lock<std::shared_mutex> r(shared);
		else
			std::unique_lock<std::shared_mutex> w(shared);
	}
}

bool
once_throws_and_runs_again()
{
	std::once_flag flag;
	int            runs = 0, caught = 0;

	for (int i = 0; i < 4; i++) {
		try {
			std::call_once(flag, [&] {
				if (++runs < 3)
					throw std::runtime_error("not yet");
			});
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	return runs == 3 && caught == 2;
}

} // namespace

int
main()
{
	auto fraction = reinterpret_cast<int (*)(int64_t)>(dlsym(RTLD_DEFAULT, "component_profiler_set_mutex_fraction"));
	auto rate = reinterpret_cast<int (*)(int64_t)>(dlsym(RTLD_DEFAULT, "component_profiler_set_block_rate"));
	std::vector<std::thread> threads;

	if (!fraction || !rate || fraction(1) || rate(1))
		return 1;
	for (long i = 0; i < 2; i++)
		threads.emplace_back(take_turns, i, 300);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(add, 3000);
	for (auto &t : threads)
		t.join();
	if (turn != 600 || sum != 9000 || !once_throws_and_runs_again())
		return 2;
	fraction(0);
	rate(0);
	std::puts("fine");
	return 0;
}
