/* Is a page that goes to swap ever stored to through an entry that is gone?
 *
 * Threads store to pages of their own, each value once, and look at once whether it is there, while another thread has all of it paged out again and
 * again. A store through a stale entry lands in a frame that is written already, or is somebody else's by now: then a thread finds an
 * older value of its own, or one that it never stored.
 */
#include "swap.h"
#include <pthread.h>

enum { WRITERS = 3, EACH = 8 };

static volatile uint64_t *memory;
static volatile int ends;
static unsigned long lost[WRITERS], stores[WRITERS];
/* What each has stored to each of its pages. */
static uint64_t latest[WRITERS][EACH];

static void *write_on(void *self)
{
	long writer = (long)self;
	uint64_t *last = latest[writer];
	for (uint64_t value = 1; !ends; value++)
		for (long page = 0; page < EACH; page++) {
			volatile uint64_t *place = memory + (writer * EACH + page) * (PAGE / 8);
			if (*place != last[page])
				lost[writer]++;
			last[page] = value << 8 | (uint64_t)writer;
			*place = last[page];
			stores[writer]++;
		}
	return NULL;
}

void stale(long times)
{
	make_swap(0);
	check(swapon(DISK, 0) == 0);
	memory = (volatile uint64_t *)memory_of(WRITERS * EACH);
	pthread_t writers[WRITERS];
	long out = count("pswpout");
	for (long writer = 0; writer < WRITERS; writer++)
		check(pthread_create(&writers[writer], NULL, write_on, (void *)writer) == 0);
	/* Until so many pages have gone: on an emulator that lets CPUs run in turn, most calls find nothing. They also do where nobody
	 * faults, as all go on storing through stale entries. */
	for (long calls = 0; calls < 50 * times && count("pswpout") - out < times; calls += 32)
		for (int i = 0; i < 32; i++)
			check(madvise((void *)memory, WRITERS * EACH * PAGE, MADV_PAGEOUT) == 0);
	ends = 1;
	unsigned long all = 0, all_lost = 0;
	for (long writer = 0; writer < WRITERS; writer++) {
		check(pthread_join(writers[writer], NULL) == 0);
		all += stores[writer];
		all_lost += lost[writer];
		/* This thread has no entry of theirs, stale or not. */
		for (long page = 0; page < EACH; page++)
			all_lost += memory[(writer * EACH + page) * (PAGE / 8)] != latest[writer][page];
	}
	printf("stores=%lu pswpout=%ld lost=%lu\n", all, count("pswpout") - out, all_lost);
	fflush(stdout);
	if (all_lost > 0)
		fail("%lu of %lu stores were lost", all_lost, all);
}
