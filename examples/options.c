/* options.c - a program with a main() of its own: its options beside those about profiling, nothing else. */
#include <stdio.h>

#include <component/component.h>

static int64_t below = 100000;
static const struct component_flag rows[] = {
	COMPONENT_FLAG_INT("below", &below, "Count those below N.", .section = "Primes", .argument = "N",
		.min = 2, .max = 1000000000),
	COMPONENT_FLAG_END
};

static int64_t
count_primes(void)
{
	int64_t count = 0;

	for (int64_t n = 2; n < below; n++) {
		int64_t divisor = 2;

		while (divisor * divisor <= n && n % divisor != 0)
			divisor++;
		if (divisor * divisor > n)
			count++;
	}
	return count;
}

int
main(int argc, char **argv)
{
	static const struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = "options", .summary = "Counts primes.");
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component_profiling_rows *profiling = NULL;
	struct component_flags *f = NULL;
	int status = 0, r;

	r = component_flags_new(&spec, &f, &err);
	if (r == 0)
		r = component_flags_add(f, rows, &err);
	if (r == 0)
		r = component_profiling_add(f, 0, &profiling, &err);
	if (r == 0)
		r = component_flags_parse(f, argc, argv, &err);
	if (r == 0)
		r = component_profiling_begin(profiling, NULL, NULL, &err);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.text);
		status = f ? component_flags_exit_status(f) : 1;
		if (status == 0)
			status = 1; /* the options were right, the profiler did not start */
	} else if (r > 0) {
		printf("%s\n", component_flags_output(f)); /* --help and the like */
	} else {
		printf("%lld primes below %lld\n", (long long)count_primes(), (long long)below);
	}
	component_flags_free(f);
	component_profiling_end(profiling);
	return status;
}
