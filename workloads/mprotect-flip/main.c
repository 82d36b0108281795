/* S3's loop: mprotect(READ), then mprotect(READ | WRITE), on one page that every thread touches.
 *
 * The second call only adds a right: nobody need be told, and its cost must not depend on the number of threads. Its time is taken
 * by the CPU's time stamp counter call by call, and the median is given, for the promotion and the demotion apart.
 */
#include "../include/workload.h"
#include <pthread.h>
#include <sys/mman.h>

#define MOST_THREADS 63

static volatile long *page;
static int cpus[MOST_THREADS + 1];
static uint32_t running, over;

/* Reads the page all the time, which holds its translation without ever faulting. */
static void *touch(void *argument)
{
	bind_to(cpus[(long)argument]);
	__atomic_add_fetch(&running, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		(void)*page;
		relax();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"iterations", "threads", NULL};
	only_options(argc, argv, options);
	long iterations = number_option(argc, argv, "iterations", 1, 5000);
	int available = allowed_cpus(cpus, MOST_THREADS + 1);
	int threads = (int)number_option(argc, argv, "threads", 1, available);
	if (threads > available)
		refuse("--threads %d: there are %d CPUs", threads, available);
	uint64_t *down = calloc((size_t)iterations, sizeof *down), *up = calloc((size_t)iterations, sizeof *up);
	check(down && up);
	memset(down, 1, (size_t)iterations * sizeof *down);
	memset(up, 1, (size_t)iterations * sizeof *up);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page != MAP_FAILED);
	*page = 1;
	bind_to(cpus[0]);
	pthread_t others[MOST_THREADS];
	for (long i = 1; i < threads; i++)
		check(pthread_create(&others[i], NULL, touch, (void *)i) == 0);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != (uint32_t)threads - 1)
		relax();

	long before = interrupt_row("TLB:");
	uint64_t start = nanoseconds();
	for (long i = 0; i < iterations; i++) {
		uint64_t t0 = ticks();
		check(mprotect((void *)page, PAGE, PROT_READ) == 0);
		uint64_t t1 = ticks();
		check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
		uint64_t t2 = ticks();
		*page = i;
		down[i] = t1 - t0;
		up[i] = t2 - t1;
	}
	uint64_t time = nanoseconds() - start;
	long after = interrupt_row("TLB:");
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (long i = 1; i < threads; i++)
		check(pthread_join(others[i], NULL) == 0);
	check(*page == iterations - 1);
	printf("operations=%ld threads=%d interrupts=%ld ns_per_op=%llu demote_ticks=%llu promote_ticks=%llu\nok\n", iterations, threads,
	       before < 0 ? -1 : after - before, (unsigned long long)(time / (uint64_t)iterations),
	       (unsigned long long)median(down, (size_t)iterations), (unsigned long long)median(up, (size_t)iterations));
	return 0;
}
