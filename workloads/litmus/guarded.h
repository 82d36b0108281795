/* Guards against stores (userfaultfd): once a page is guarded nobody stores to it, neither for the program itself nor for a child that is
 * made then. The fork finds entries that are not writable, and flushes nothing: it relies on the guard's flush.
 */
#include "../include/guard.h"

static void place_watched(void)
{
	place_among_neighbours();
	watch_stores(page, PAGE);
}

static void prepare_unguarded(long iteration)
{
	set_guard(page, PAGE, 0);
	page[100] = iteration;
}
static void change_guard(long iteration) { (void)iteration; set_guard(page, PAGE, 1); }

/* The same with a page of shared memory, which stays guarded when the mapping drops it. */
static void place_watched_shared(void)
{
	place_among_neighbours();
	check(mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
	watch_stores(page, PAGE);
}
static void change_guard_and_drop(long iteration)
{
	set_guard(page, PAGE, 1);
	if (iteration % 2)
		check(madvise((void *)page, PAGE, MADV_DONTNEED) == 0);
}

static void place_watched_batch(void)
{
	place_batch();
	watch_stores(batch, BATCH * PAGE);
}
static void prepare_unguarded_batch(long iteration)
{
	if (starts_batch(iteration))
		set_guard(batch, BATCH * PAGE, 0);
	prepare_for_fork(iteration);
}
static void change_guard_and_fork(long iteration)
{
	if (!starts_batch(iteration))
		return;
	set_guard(batch, BATCH * PAGE, 1);
	fork_child(iteration);
}
static int access_guarded(int reader, long iteration)
{
	volatile long *mine = batch_page(iteration) + reader;
	return store(mine, -iteration) == FAULTED && load(mine) == iteration;
}
