/*
 * product.c - what a collector makes and a format writes.
 *
 * Tests: tests/custom/test_custom.c, tests/project/adding.t.
 */
#include <config.h>

#include "product.h"

#include <stdarg.h>
#include <stdio.h>

int64_t
product_duration_ns(const struct product *p)
{
	return p->type == PRODUCT_PROFILE ? p->profile.duration_ns :
	       p->type == PRODUCT_TRACE ? (int64_t)(p->trace.end_ns - p->trace.start_ns) : 0;
}

void
product_comment(struct product *p, const char *format, ...)
{
	char    text[PRODUCT_COMMENT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (p->type == PRODUCT_PROFILE)
		profile_comment(&p->profile, "%s", text);
	else if (p->type == PRODUCT_TRACE)
		trace_comment(&p->trace, "%s", text);
}

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
