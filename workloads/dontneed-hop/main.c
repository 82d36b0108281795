/* S1's loop: MADV_DONTNEED a page, touch it, move to the next CPU.
 *
 * Each turn the CPU that is left goes idle and keeps the address space lazily; the next turn's flush must not interrupt it. The
 * process has one thread, so the bound is no interrupt at all, on any number of CPUs.
 */
#include "../include/measure.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
	static const char *const options[] = {"iterations", NULL};
	only_options(argc, argv, options);
	long iterations = number_option(argc, argv, "iterations", 1, 10000);
	static int cpus[CPU_SETSIZE];
	int count = allowed_cpus(cpus, CPU_SETSIZE);
	volatile long *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page != MAP_FAILED);
	for (int i = 0; i < 2 * count; i++)
		bind_to(cpus[i % count]);

	struct measurement turns = begin("TLB:");
	for (long i = 1; i <= iterations; i++) {
		if (*page != 0)
			fail("turn %ld: MADV_DONTNEED left %ld in the page", i, *page);
		*page = i;
		bind_to(cpus[i % count]);
		if (*page != i)
			fail("turn %ld: on the next CPU the page holds %ld", i, *page);
		check(madvise((void *)page, PAGE, MADV_DONTNEED) == 0);
	}
	end(&turns);
	print_measurement(&turns, NULL, 1, iterations, 0, "");
	puts("ok");
	return 0;
}
