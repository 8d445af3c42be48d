/*
 * unwind_build.c - the unwind tables of a program with a lot of code: how large they
 * are beside what they are made from, and the CPU time of making them for 100 MB of it.
 *
 *     unwind_build ours LIBRARY...
 */
#include <config.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "bench.h"
#include "tables.h"

#define TEXT 100e6 /* bytes; libraries come in sizes of their own, so there is rather more */

static int
add_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *sum = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
			*sum += info->dlpi_phdr[i].p_memsz;
	return 0;
}

int
main(int argc, char **argv)
{
	struct tables_stats stats;
	size_t              text = 0;
	int64_t             begin;
	double              ms;

	for (int i = 2; i < argc && (double)text < TEXT; i++) {
		dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
		text = 0;
		dl_iterate_phdr(add_text, &text);
	}
	if (text < 50e6)
		bench_skip("none of the large libraries (Debian: libllvm14) is here");
	begin = bench_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (tables_build() < 0)
		bench_die("tables_build");
	ms = (double)(bench_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e6;
	bench_print("unwind_build_ms", ms * TEXT / (double)text, "ms");
	tables_stats(&stats);
	bench_print("unwind_table_ratio", (double)stats.bytes / (double)stats.frames_bytes, "ratio");
	printf("# %zu objects, %.0f MB of text, %zu rows, %.2f MB of tables for %.2f MB of .eh_frame and its header\n", stats.objects,
	       (double)text / 1e6, stats.rows, (double)stats.bytes / 1e6, (double)stats.frames_bytes / 1e6);
	return 0;
}
