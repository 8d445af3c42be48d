/*
 * test_health_answer.c - the words a probe gets.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "health.h"

static struct health_results well, ill, stuck = { .stuck = true }, short_of_memory = { .failed = true };

static int
set_up(void **state)
{
	(void)state;
	health_results_add(&well, "running", 0, "");
	health_results_add(&well, "profiling", 0, "off: address in use");
	health_results_add(&ill, "running", 0, "");
	health_results_add(&ill, "store", -EIO, "secret-host: disk broke");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	health_results_clear(&well);
	health_results_clear(&ill);
	return 0;
}

static void
each_question_has_its_answer(void **state)
{
	static const struct {
		const char            *path, *query;
		struct health_results *results;
		int                    status;
		const char            *body;
	} rows[] = {
		{ "/healthz", NULL, &well, 200, "ok" },
		{ "/livez", NULL, &well, 200, "ok" },
		{ "/readyz", NULL, &well, 200, "ok" },
		{ "/livez", "verbose", &well, 200, "[+]loop ok\nlivez check passed\n" },
		{ "/readyz", "verbose=1", &well, 200,
			"[+]loop ok\n[+]running ok\n[+]profiling off: address in use\nreadyz check passed\n" },
		{ "/readyz", NULL, &ill, 500,
			"[+]loop ok\n[+]running ok\n[-]store failed: reason withheld\nreadyz check failed\n" },
		/* Not being ready is no reason to be restarted. */
		{ "/livez", NULL, &ill, 200, "ok" },
		{ "/healthz", "verbose", &ill, 200, "[+]loop ok\nhealthz check passed\n" },
		{ "/readyz", "exclude=store", &ill, 200, "ok" },
		{ "/readyz", "exclude=st%6fre", &ill, 200, "ok" },
		{ "/readyz", "verbose&exclude=a%0Ab", &well, 200,
			"[+]loop ok\n[+]running ok\n[+]profiling off: address in use\n"
			"warn: some health checks cannot be excluded: no matches for \"a\\x0ab\"\nreadyz check passed\n" },
		{ "/readyz", "verbose&exclude=store", &ill, 200,
			"[+]loop ok\n[+]running ok\n[+]store excluded: ok\nreadyz check passed\n" },
		{ "/readyz", "exclude=running&exclude=store&verbose", &ill, 200,
			"[+]loop ok\n[+]running excluded: ok\n[+]store excluded: ok\nreadyz check passed\n" },
		{ "/readyz", "exclude=stor&verbose", &well, 200,
			"[+]loop ok\n[+]running ok\n[+]profiling off: address in use\n"
			"warn: some health checks cannot be excluded: no matches for \"stor\"\nreadyz check passed\n" },
		{ "/readyz", "verbosely", &well, 200, "ok" },
		{ "/readyz/running", NULL, &ill, 200, "ok" },
		{ "/readyz/loop", NULL, &ill, 200, "ok" },
		{ "/readyz/store", NULL, &ill, 500, "[-]store failed: reason withheld\n" },
		{ "/readyz/nosuch", NULL, &ill, 404, "404 no such check\n" },
		{ "/livez/store", NULL, &ill, 404, "404 no such check\n" },
		{ "/readyz", NULL, &stuck, 500, "[-]loop failed: no answer within 0.9s\nreadyz check failed\n" },
		{ "/livez", NULL, &stuck, 500, "[-]loop failed: no answer within 0.9s\nlivez check failed\n" },
		/* Nobody has looked whether it is ready. */
		{ "/readyz", "exclude=loop", &stuck, 500,
			"[+]loop excluded: ok\n[-]checks failed: not known, no answer within 0.9s\nreadyz check failed\n" },
		{ "/livez", "exclude=loop", &stuck, 200, "ok" },
		{ "/readyz", "exclude=memory", &short_of_memory, 500,
			"[+]loop ok\n[-]checks failed: not known, out of memory\n"
			"warn: some health checks cannot be excluded: no matches for \"memory\"\nreadyz check failed\n" },
		{ "/readyz/store", NULL, &stuck, 500, "[-]loop failed: no answer within 0.9s\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct health_answer a;

		assert_int_equal(health_answer(rows[i].path, rows[i].query, rows[i].results, &a), 0);
		if (a.status != rows[i].status || a.size != strlen(rows[i].body) ||
		    memcmp(a.body, rows[i].body, a.size) != 0)
			fail_msg("%s?%s: got %d \"%.*s\", want %d \"%s\"", rows[i].path,
				rows[i].query ? rows[i].query : "", a.status, (int)a.size, a.body, rows[i].status,
				rows[i].body);
		free(a.body);
	}
}

static void
only_the_three_paths_and_what_is_below_them_are_known(void **state)
{
	(void)state;
	assert_true(health_path_known("/healthz"));
	assert_true(health_path_known("/readyz/store"));
	assert_false(health_path_known("/"));
	assert_false(health_path_known("/healthzz"));
	assert_false(health_path_known("/debug/pprof/"));
	assert_false(health_path_known("healthz"));
}

static void
reasons_are_there_for_the_log(void **state)
{
	char *text = health_results_failing(&ill);

	(void)state;
	assert_string_equal(text, "store: secret-host: disk broke");
	free(text);
	text = health_results_failing(&well);
	assert_string_equal(text, "");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_question_has_its_answer),
		cmocka_unit_test(only_the_three_paths_and_what_is_below_them_are_known),
		cmocka_unit_test(reasons_are_there_for_the_log),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
