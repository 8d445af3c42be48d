/* agent_zlib.c - a program with zlib in it, all of it exported, at work while it is looked into. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int
main(void)
{
	static unsigned char from[1 << 16], packed[1 << 17], again[1 << 16];
	char                 line[16];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * i >> 7);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 50; i++) {
		uLongf packed_size = sizeof(packed), size = sizeof(again);

		if (compress2(packed, &packed_size, from, sizeof(from), 1 + i % 9) != Z_OK ||
		    uncompress(again, &size, packed, packed_size) != Z_OK || size != sizeof(from) || memcmp(from, again, size) != 0)
			abort();
	}
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	puts("end");
	return 0;
}
