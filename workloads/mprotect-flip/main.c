/* S3's loop: mprotect(READ), then mprotect(READ | WRITE), on one page that every thread touches; with 1, 2, 4 and 8 threads, as far as
 * there are CPUs.
 *
 * The second call only adds a right: nobody need be told, and its cost must not depend on the number of threads. Its time is taken
 * by the CPU's time stamp counter call by call, and the median is given, for the promotion and the demotion apart. With `--within P` it
 * fails if the promotion takes more than P per cent longer with more threads than with one (for the instruction clock, where it repeats).
 *
 * Bound: the other threads hold the page's translation and never leave user mode, so nothing but an interrupt can take the right to write
 * away from them before the first call returns: one for each of them. The second call needs none.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <sys/mman.h>

static volatile long *page;
static long iterations, within;
static uint64_t *down, *up, alone;

/* Reads the page all the time, which holds its translation without ever faulting. */
static void *touch(void *self)
{
	take_place(self);
	while (!is_over()) {
		(void)*page;
		relax();
	}
	return NULL;
}

static void measure(int threads)
{
	start_beside(threads - 1, touch);
	struct measurement pairs = begin("TLB:");
	for (long i = 0; i < iterations; i++) {
		uint64_t t0 = ticks();
		check(mprotect((void *)page, PAGE, PROT_READ) == 0);
		uint64_t t1 = ticks();
		check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
		uint64_t t2 = ticks();
		*page = i;
		down[i] = t1 - t0;
		up[i] = t2 - t1;
		/* An emulator that runs one CPU at a time goes on to the next one here. Else it may stay for a thousand turns, while another CPU's turn
		 * had ended within the kernel, where nobody interrupts it. */
		relax();
	}
	end(&pairs);
	end_beside();
	check(*page == iterations - 1);
	uint64_t promote = median(up, (size_t)iterations);
	if (threads == 1)
		alone = promote;
	if (within && alone && promote * 100 > alone * (uint64_t)(100 + within))
		fail("the call that adds a right takes %llu ticks with %d threads, and %llu with one", (unsigned long long)promote, threads,
		     (unsigned long long)alone);
	char name[32], figures[96];
	snprintf(name, sizeof name, "threads-%d", threads);
	snprintf(figures, sizeof figures, " demote_ticks=%llu promote_ticks=%llu",
		 (unsigned long long)median(down, (size_t)iterations), (unsigned long long)promote);
	print_measurement(&pairs, name, threads, iterations, threads - 1, figures);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"iterations", "threads", "within", NULL};
	only_options(argc, argv, options);
	iterations = number_option(argc, argv, "iterations", 1, 5000);
	within = number_option(argc, argv, "within", 1, 0);
	take_first_cpu();
	int wanted = threads_option(argc, argv);
	down = calloc((size_t)iterations, sizeof *down);
	up = calloc((size_t)iterations, sizeof *up);
	check(down && up);
	memset(down, 1, (size_t)iterations * sizeof *down);
	memset(up, 1, (size_t)iterations * sizeof *up);
	/* Between pages without rights: beside memory of the threads' it would become one mapping with that, and come apart again. */
	char *space = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(space != MAP_FAILED);
	page = (volatile long *)(space + PAGE);
	check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
	*page = 1;
	if (wanted)
		measure(wanted);
	for (int threads = 1; !wanted && threads <= cpu_count && threads <= 8; threads *= 2)
		measure(threads);
	puts("ok");
	return 0;
}
