/* Threads that page out their own memory at the same time, and nobody looks at it: it is on the disk then, and in memory no longer. */
#include "swap.h"
#include <pthread.h>

enum { THREADS = 4, EACH = 64 };

static unsigned char *memory;
static pthread_barrier_t step;
static long times;

static void *page_out(void *self)
{
	unsigned char *own = memory + (long)self * EACH * PAGE;
	for (long round = 0; round < times; round++) {
		for (long page = 0; page < EACH; page++)
			own[page * PAGE]++;
		pthread_barrier_wait(&step);
		check(madvise(own, EACH * PAGE, MADV_PAGEOUT) == 0);
		pthread_barrier_wait(&step);
		/* Somebody looks at all of it. */
		pthread_barrier_wait(&step);
	}
	return NULL;
}

void together(long wanted)
{
	pthread_t threads[THREADS];
	make_swap(0);
	check(swapon(DISK, 0) == 0);
	times = wanted;
	memory = memory_of(THREADS * EACH);
	check(pthread_barrier_init(&step, NULL, THREADS + 1) == 0);
	for (long self = 0; self < THREADS; self++)
		check(pthread_create(&threads[self], NULL, page_out, (void *)self) == 0);
	long beside = 0;
	for (long round = 0; round < times; round++) {
		unsigned char resident[THREADS * EACH];
		pthread_barrier_wait(&step);
		pthread_barrier_wait(&step);
		check(mincore(memory, THREADS * EACH * PAGE, resident) == 0);
		for (long page = 0; page < THREADS * EACH; page++)
			beside += resident[page] & 1;
		pthread_barrier_wait(&step);
	}
	for (long self = 0; self < THREADS; self++)
		check(pthread_join(threads[self], NULL) == 0);
	for (long page = 0; page < THREADS * EACH; page++)
		check(memory[page * PAGE] == (unsigned char)times);
	/* Linux keeps some for a while. */
	printf("beside=%ld of %ld\n", beside, times * THREADS * EACH);
	check(swapoff(DISK) == 0);
}
