/*
 * test_ports.c - components of one host must not want the same port.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <component/ports.h>

static void
every_port_is_given_once_and_none_is_a_neighbours(void **state)
{
	const struct component_ports *row;
	unsigned                      seen[64];
	size_t                        count = 0;

	(void)state;
	for (size_t i = 0; (row = component_ports_at(i)); i++) {
		const unsigned ports[] = { row->profiling, row->health, row->metrics };

		for (size_t k = 0; k < 3; k++) {
			if (ports[k] == 7070 || ports[k] == 8080 || ports[k] < 1024)
				fail_msg("%s must not have port %u", row->name, ports[k]);
			for (size_t j = 0; j < count; j++)
				if (seen[j] == ports[k])
					fail_msg("%s has port %u, which is taken", row->name, ports[k]);
			assert_true(count < sizeof(seen) / sizeof(seen[0]));
			seen[count++] = ports[k];
		}
		assert_true(row->summary[strlen(row->summary) - 1] == '.');
		assert_ptr_equal(component_ports_find(row->name), row);
	}
	assert_true(count >= 12);
}

static void
the_known_components_have_the_ports_their_users_know(void **state)
{
	static const struct {
		const char *name;
		unsigned    profiling, health, metrics;
	} rows[] = {
		{ "backend-controller", 6060, 18081, 18080 },
		{ "cluster-agent", 6061, 8083, 8082 },
		{ "appstudio-controller", 6062, 8085, 8084 },
		{ "componentctl", 7777, 7779, 7778 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct component_ports *row = component_ports_find(rows[i].name);

		assert_non_null(row);
		assert_int_equal(row->profiling, rows[i].profiling);
		assert_int_equal(row->health, rows[i].health);
		assert_int_equal(row->metrics, rows[i].metrics);
	}
	assert_int_equal(COMPONENT_PORT_CLUSTER_AGENT_PROFILING, 6061);
	assert_null(component_ports_find("karmada-scheduler"));
	assert_null(component_ports_find(NULL));
	assert_null(component_ports_find(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_port_is_given_once_and_none_is_a_neighbours),
		cmocka_unit_test(the_known_components_have_the_ports_their_users_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
