/*
 * product.c - what a collector makes and a format writes.
 *
 * Tests: tests/custom/test_custom.c, tests/project/adding.t.
 */
#include <config.h>

#include "product.h"

void
product_release(struct product *p)
{
	switch (p->type) {
	case PRODUCT_PROFILE: profile_release(&p->profile); break;
	case PRODUCT_DUMP: dump_release(&p->dump); break;
	case PRODUCT_TRACE: trace_release(&p->trace); break;
	case PRODUCT_RESIDENCE: residence_release(&p->residence); break;
	}
}
