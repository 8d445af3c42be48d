/*
 * labels.c - what a label costs: a scope from its begin to its end, in instructions.
 *
 *     labels VARIANT N     known   the thread has had the same labels a little while ago
 *                          second  the same, beside a label that stays
 *                          new     a value that was never seen
 *                          use     labels that were kept, and none again
 */
#include <stdio.h>
#include <stdlib.h>

#include <component/labels.h>

#define WARM 64 /* and so many are new, also when only a few are counted */

static struct component_labels kept;

static void
once(char variant, unsigned i)
{
	char value[16];

	switch (variant) {
	case 'k':
	case 's': {
		COMPONENT_LABEL_SCOPE("tenant", i % 2 ? "acme" : "zeta");
		break;
	}
	case 'n': {
		for (unsigned k = 0, rest = i; k < 7; k++, rest /= 16)
			value[k] = "0123456789abcdef"[rest % 16];
		value[7] = '\0';
		COMPONENT_LABEL_SCOPE("request", value);
		break;
	}
	default:
		component_labels_use(&kept);
		component_labels_use(NULL);
	}
}

__attribute__((noinline)) static void
measured(char variant, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		once(variant, i);
}

int
main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (n == 0)
		return 2;
	component_label_set("job", "index");
	kept = component_labels_keep();
	if (argv[1][0] != 's')
		component_label_clear(NULL);
	measured(argv[1][0], 0, WARM);
	measured(argv[1][0], WARM, WARM + n);
	component_labels_release(&kept);
	printf("labels %u operations\n", n);
	return 0;
}
