/* 64 threads of which 63 sleep: the one that is awake drops pages which all of them have read.
 *
 * The sleepers are shared out among the CPUs, and each has run on its own. All CPUs but the first are idle during the measurement; they
 * still have the address space loaded, and translations of the pages.
 *
 * Bound: a CPU that is idle executes no user code before its kernel has switched to a thread, and the kernel can catch up then: none.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <sys/mman.h>

#define PAGES 64
#define WORDS (PAGE / sizeof(long))

static volatile long *pages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long asleep, awake_again; /* both under the lock */

static void *read_and_sleep(void *self)
{
	bind_to(cpus[(long)self % cpu_count]);
	for (int i = 0; i < PAGES; i++)
		if (pages[i * WORDS] != 1)
			fail("a sleeper reads %ld", pages[i * WORDS]);
	check(pthread_mutex_lock(&lock) == 0);
	asleep++;
	check(pthread_cond_broadcast(&changed) == 0);
	while (!awake_again)
		check(pthread_cond_wait(&changed, &lock) == 0);
	check(pthread_mutex_unlock(&lock) == 0);
	for (int i = 0; i < PAGES; i++)
		if (pages[i * WORDS] != 0)
			fail("a sleeper finds %ld in a page that was dropped", pages[i * WORDS]);
	return NULL;
}

/* Waits until all sleepers are at their condition, and a little longer until their CPUs are idle. */
static void wait_for_sleepers(long count)
{
	check(pthread_mutex_lock(&lock) == 0);
	while (asleep < count)
		check(pthread_cond_wait(&changed, &lock) == 0);
	check(pthread_mutex_unlock(&lock) == 0);
	usleep(50000);
}

static void drop_all(void)
{
	for (int i = 0; i < PAGES; i++) {
		check(madvise((void *)&pages[i * WORDS], PAGE, MADV_DONTNEED) == 0);
		pages[i * WORDS + 1] = 1;
		if (pages[i * WORDS] != 0)
			fail("a page that was dropped holds %ld", pages[i * WORDS]);
	}
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"rounds", "threads", NULL};
	only_options(argc, argv, options);
	long rounds = number_option(argc, argv, "rounds", 1, 50), threads = number_option(argc, argv, "threads", 1, 64);
	static pthread_t sleepers[1024];
	if (threads > 1024)
		refuse("--threads %ld: at most 1024", threads);
	take_first_cpu();
	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(pages != MAP_FAILED);
	for (int i = 0; i < PAGES; i++)
		pages[i * WORDS] = 1;
	for (long self = 1; self < threads; self++)
		check(pthread_create(&sleepers[self], NULL, read_and_sleep, (void *)self) == 0);
	wait_for_sleepers(threads - 1);

	struct measurement drops = begin("TLB:");
	for (long round = 0; round < rounds; round++) {
		drop_all();
		for (int i = 0; i < PAGES; i++)
			pages[i * WORDS] = 1;
	}
	end(&drops);
	for (int i = 0; i < PAGES; i++)
		pages[i * WORDS] = 0;
	check(pthread_mutex_lock(&lock) == 0);
	awake_again = 1;
	check(pthread_cond_broadcast(&changed) == 0 && pthread_mutex_unlock(&lock) == 0);
	for (long self = 1; self < threads; self++)
		check(pthread_join(sleepers[self], NULL) == 0);
	print_measurement(&drops, NULL, threads, rounds * PAGES, 0, "");
	puts("ok");
	return 0;
}
