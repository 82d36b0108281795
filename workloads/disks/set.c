/* A set of pages that is used again and again stays in memory while the rest of the disk, many times the memory, streams by.
 *
 * Before each use mincore says which pages of the set are gone. The first pass is not counted: while everything has been used once, nothing
 * tells what will be used again. Set and stream by calls and by mappings. A set that is locked stays without being used.
 */
#include "disks.h"
#include <sys/mman.h>

#define SET_PAGES 3072L
#define STREAM_PAGES 1024L
#define PASSES 3

static int disk;
static unsigned char *mapped;
static long pages, first_of_set;

static void use(long first, long count, int by_calls)
{
	static unsigned char bytes[16 * PAGE];
	for (long page = first; page < first + count; page++) {
		const unsigned char *word = mapped + page * PAGE;
		if (by_calls) {
			if ((page - first) % 16 == 0)
				check(pread(disk, bytes, sizeof bytes, page * PAGE) > 0);
			word = bytes + (page - first) % 16 * PAGE;
		}
		expect(word, 8, (uint64_t)page * PAGE, 0, "/dev/vda");
	}
}

static long absent(void)
{
	static unsigned char resident[SET_PAGES];
	check(mincore(mapped + first_of_set * PAGE, SET_PAGES * PAGE, resident) == 0);
	long count = 0;
	for (long i = 0; i < SET_PAGES; i++)
		count += !(resident[i] & 1);
	return count;
}

/* How many pages of the set had to come again. */
static long pass(int set_by_calls, int stream_by_calls)
{
	long lost = 0;
	for (long next = 0; next + STREAM_PAGES <= pages; next += STREAM_PAGES) {
		if (next + STREAM_PAGES > first_of_set && next < first_of_set + SET_PAGES)
			continue;
		use(next, STREAM_PAGES, stream_by_calls);
		lost += absent();
		use(first_of_set, SET_PAGES, set_by_calls);
	}
	return lost;
}

/* Locked pages stay, though nobody uses them. */
static void stays_if_locked(void)
{
	unsigned char *first = mapped + first_of_set * PAGE;
	check(mlock(first, SET_PAGES * PAGE) == 0);
	for (int i = 0; i < 2; i++) {
		use(0, first_of_set / 16 * 16, i);
		if (absent() != 0)
			fail("%ld locked pages are gone", absent());
	}
	check(munlock(first, SET_PAGES * PAGE) == 0);
}

/* What is paged out is gone at once, and comes again as it was. */
static void goes_if_paged_out(void)
{
	use(first_of_set, SET_PAGES, 0);
	check(absent() == 0);
	check(madvise(mapped + first_of_set * PAGE, SET_PAGES * PAGE, MADV_PAGEOUT) == 0);
	if (absent() < SET_PAGES - 64)
		fail("%ld pages are gone that were paged out", absent());
	use(first_of_set, SET_PAGES, 0);
}

void set(void)
{
	uint64_t size;
	disk = open_disk("/dev/vda", O_RDONLY, &size);
	pages = (long)(size / PAGE);
	first_of_set = pages / 2 / 16 * 16;
	mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, disk, 0);
	check(mapped != MAP_FAILED);
	for (int way = 0; way < 4; way++) {
		long lost[PASSES];
		for (int i = 0; i < PASSES; i++)
			lost[i] = pass(way & 1, way >> 1);
		printf("set=%s stream=%s lost_at_first=%ld lost_later=%ld\n", way & 1 ? "calls" : "mapping",
		       way >> 1 ? "calls" : "mapping", lost[0], lost[1] + lost[2]);
		fflush(stdout);
	}
	stays_if_locked();
	goes_if_paged_out();
}
