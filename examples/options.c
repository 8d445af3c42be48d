/* options.c - a program with a main() of its own: its options beside those about profiling, nothing else. */
#include <stdio.h>
#include <component/component.h>

int main(int argc, char **argv)
{
	static const struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = "options", .summary = "Counts primes.");
	int64_t below = 100000, primes = 0;
	const struct component_flag rows[] = { COMPONENT_FLAG_INT("below", &below, "Count those below N.",
		.section = "Primes", .argument = "N", .min = 2, .max = 1000000000), COMPONENT_FLAG_END };
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component_profiling_rows *profiling = NULL;
	struct component_flags *f = NULL;
	int status = 0, r = component_flags_new(&spec, &f, &err);

	if (r < 0 || (r = component_flags_add(f, rows, &err)) < 0 || (r = component_profiling_add(f, 0, &profiling, &err)) < 0 ||
	    (r = component_flags_parse(f, argc, argv, &err)) != 0 || (r = component_profiling_begin(profiling, NULL, NULL, &err)) < 0)
		status = fprintf(r > 0 ? stdout : stderr, "%s\n", r > 0 ? component_flags_output(f) : err.text) < 0 ? 1 : component_flags_exit_status(f);
	for (int64_t n = 2, d; r == 0 && n < below; primes += d * d > n, n++)
		for (d = 2; d * d <= n && n % d; d++)
			;
	if (r == 0)
		printf("%lld primes below %lld\n", (long long)primes, (long long)below);
	return component_flags_free(f), component_profiling_end(profiling), r < 0 && status == 0 ? 1 : status;
}
