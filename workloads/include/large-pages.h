/* Large pages: places that are aligned to one, and how much of a place is mapped by them. */
#pragma once
#include "workload.h"
#include <sys/mman.h>

#define LARGE (2UL << 20)

/* Maps `length` bytes of private anonymous memory at an address that is aligned to a large page, between places that allow no access, so
 * that no neighbour becomes one area with it. */
static inline char *map_aligned(size_t length, int protection)
{
	char *space = mmap(NULL, length + 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(space != MAP_FAILED);
	char *start = (char *)(((uintptr_t)space + LARGE) & ~(LARGE - 1));
	check(mmap(start, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start);
	return start;
}

/* KiB that large pages map in all areas between `start` and `end`, as /proc/self/smaps has it. */
static inline long large_kilobytes(const char *start, const char *end)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512];
	long sum = 0, value;
	unsigned long area_start, area_end;
	int inside = 0;
	check(file != NULL);
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx ", &area_start, &area_end) == 2)
			inside = area_start >= (unsigned long)start && area_end <= (unsigned long)end;
		else if (inside && sscanf(line, "AnonHugePages: %ld kB", &value) == 1)
			sum += value;
	}
	fclose(file);
	return sum;
}
