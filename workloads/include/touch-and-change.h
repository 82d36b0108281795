/* The program of private-dontneed, private-munmap, private-mprotect, shared-dontneed, shared-munmap and shared-mprotect.
 *
 * Each of these defines PAGES_ARE_SHARED (0 or 1) and CHANGE (`dontneed`, `unmap` or `protect`), and includes this file. An operation
 * is one change of one page:
 *
 *     dontneed   MADV_DONTNEED, after which the page must be empty
 *     unmap      munmap, and mmap in the hole, after which the page must be empty
 *     protect    mprotect(READ) and mprotect(READ | WRITE), after which the page must be as it was, and writable
 *
 * private: as in the community's tlb_flush cases, every thread has a CPU and pages of its own, writes to them and changes them. Measured
 * twice: `alone-N`, where one thread does so beside N - 1 threads that only spin, and `all-N`, where N do. In the latter, threads meet
 * in the kernel: who is interrupted there is who happens to run.
 * Bound: no CPU but the changing one can hold a translation of these pages, as no other thread ever used them: none.
 *
 * shared: one thread writes to the pages, N - 1 others read each of them, compare, and go on spinning in user mode; then the one changes
 * page after page. The clock stands while they read; reading present pages causes no interrupts.
 * Bound: each of the other threads' CPUs holds the page's translation and never leaves user mode, so nothing but an interrupt can take
 * it away before the call returns: N - 1.
 *
 * Every page is checked after its change by the changing thread, in the shared cases by all others too: a CPU that was forgotten sees the
 * value of an earlier round. The pages have touched neighbours on both sides, so that no change frees a page table.
 */
#ifndef TOUCH_AND_CHANGE_H
#define TOUCH_AND_CHANGE_H

#include "beside.h"
#include "measure.h"
#include <sys/mman.h>

#define PAGES 64	       /* that are changed, one after the other, in one round */
#define WORDS (PAGE / sizeof(long))

typedef volatile long *pages_t;

static pages_t map_pages(void)
{
	char *memory = mmap(NULL, (PAGES + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	memory[0] = memory[(PAGES + 1) * PAGE] = 1;
	return (pages_t)(memory + PAGE);
}

static void unmap_pages(pages_t pages)
{
	check(munmap((char *)pages - PAGE, (PAGES + 2) * PAGE) == 0);
}

/* ---- the changes; `page` has `mark` in its first word ---- */

/* Writes to the second word of a page that must be empty now; the first then tells a stale translation, which leads to the old page,
 * from the new one. The page is not read before: the shared empty page that reading gives would have to be replaced again. */
__attribute__((unused)) static void check_empty(pages_t page, long mark)
{
	page[1] = mark;
	if (page[0] != 0)
		fail("a page that was dropped still holds %ld", page[0]);
}

__attribute__((unused)) static void dontneed(pages_t page, long mark)
{
	check(madvise((void *)page, PAGE, MADV_DONTNEED) == 0);
	check_empty(page, mark);
}

__attribute__((unused)) static void unmap(pages_t page, long mark)
{
	check(munmap((void *)page, PAGE) == 0);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	check(mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == (void *)page);
	check_empty(page, mark);
}

__attribute__((unused)) static void protect(pages_t page, long mark)
{
	check(mprotect((void *)page, PAGE, PROT_READ) == 0);
	if (page[0] != mark)
		fail("a page that was protected holds %ld instead of %ld", page[0], mark);
	check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
	page[0] = mark + 1;
	if (page[0] != mark + 1)
		fail("a page holds %ld after %ld was written to it", page[0], mark + 1);
}

static void fill(pages_t pages, long mark)
{
	for (int i = 0; i < PAGES; i++)
		pages[i * WORDS] = mark;
}

static void change(pages_t pages, long mark)
{
	for (int i = 0; i < PAGES; i++)
		CHANGE(&pages[i * WORDS], mark);
}

static long rounds;

#if PAGES_ARE_SHARED

static pages_t shared_pages;
static uint32_t to_read;		  /* the round whose mark is in the pages */
static uint32_t has_read[MOST_CPUS][16]; /* by thread, each on a cache line of its own */

static void *read_each_round(void *self)
{
	uint32_t *mine = has_read[(long)self], done = __atomic_load_n(&to_read, __ATOMIC_ACQUIRE);
	take_place(self);
	while (!is_over()) {
		uint32_t round = __atomic_load_n(&to_read, __ATOMIC_ACQUIRE);
		if (round != done) {
			for (int i = 0; i < PAGES; i++)
				if (shared_pages[i * WORDS] != (long)round)
					fail("round %u: another CPU reads %ld", round, shared_pages[i * WORDS]);
			done = round;
			__atomic_store_n(mine, done, __ATOMIC_RELEASE);
		}
		relax();
	}
	return NULL;
}

/* Has every other thread read all pages, which hold `round`. */
static void let_others_read(int others, uint32_t round)
{
	__atomic_store_n(&to_read, round, __ATOMIC_RELEASE);
	for (int self = 1; self <= others; self++)
		while (__atomic_load_n(has_read[self], __ATOMIC_ACQUIRE) != round)
			relax();
}

static void measure(int threads)
{
	char name[32];
	snprintf(name, sizeof name, "threads-%d", threads);
	shared_pages = map_pages();
	fill(shared_pages, 0);
	to_read = 0;
	memset(has_read, 0, sizeof has_read);
	start_beside(threads - 1, read_each_round);
	struct measurement changes = begin_with_clock_paused("TLB:");
	for (long round = 1; round <= rounds; round++) {
		fill(shared_pages, round);
		let_others_read(threads - 1, (uint32_t)round);
		resume_clock(&changes);
		change(shared_pages, round);
		pause_clock(&changes);
	}
	end_with_clock_paused(&changes);
	end_beside();
	unmap_pages(shared_pages);
	print_measurement(&changes, name, threads, rounds * PAGES, threads - 1, "");
}

#define FEWEST_THREADS 2

#else

static uint32_t started, ended; /* threads that have prepared their pages, and that have done their rounds */

static void work(pages_t pages)
{
	for (long round = 1; round <= rounds; round++) {
		fill(pages, round);
		change(pages, round);
	}
}

/* Works as the measuring thread does, once that has begun. */
static void *work_beside(void *self)
{
	pages_t pages = map_pages();
	fill(pages, 0);
	take_place(self);
	while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		relax();
	work(pages);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
	while (!is_over())
		relax();
	return NULL;
}

/* From the first thread's start to the last one's end; who is done spins on. */
static void measure_with(const char *kind, int threads, void *(*body)(void *), int working)
{
	char name[32];
	snprintf(name, sizeof name, "%s-%d", kind, threads);
	pages_t pages = map_pages();
	fill(pages, 0);
	started = ended = 0;
	start_beside(threads - 1, body);
	struct measurement changes = begin("TLB:");
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	work(pages);
	while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) != (uint32_t)working - 1)
		relax();
	end(&changes);
	end_beside();
	unmap_pages(pages);
	print_measurement(&changes, name, threads, working * rounds * PAGES, 0, "");
}

static void measure(int threads)
{
	measure_with("alone", threads, spin, 1);
	if (threads > 1)
		measure_with("all", threads, work_beside, threads);
}

#define FEWEST_THREADS 1

#endif

int main(int argc, char **argv)
{
	static const char *const options[] = {"rounds", "threads", NULL};
	only_options(argc, argv, options);
	rounds = number_option(argc, argv, "rounds", 1, 50);
	if (rounds > INT32_MAX)
		refuse("--rounds %ld: at most %d", rounds, INT32_MAX);
	take_first_cpu();
	int wanted = threads_option(argc, argv);
	if (wanted ? wanted < FEWEST_THREADS : cpu_count < FEWEST_THREADS)
		refuse("this needs %d threads, with a CPU each", FEWEST_THREADS);
	if (wanted)
		measure(wanted);
	for (int threads = FEWEST_THREADS; !wanted && threads <= cpu_count && threads <= 8; threads *= 2)
		measure(threads);
	puts("ok");
	return 0;
}

#endif
