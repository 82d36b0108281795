/* One thread changes a mapping and raises a flag; others spin on the flag and then access: they must see the new mapping.
 *
 * This is promise D3 as a program can observe it, one case per class of operation. Every iteration goes
 *
 *     changer                                   readers, one per further CPU, each bound to its own
 *     prepares the page, says `prepared`   -->  touch it, so that their CPU holds the old translation, say `touched`
 *     changes the mapping
 *     says `changed`                       -->  access it once more, compare, say `accessed`
 *
 * Waiting is by spinning with a pause, never in the kernel: a reader stays in user mode from its touch to its access, so nothing but
 * the shootdown can take the old translation away. With --calls 1 the readers wait for the change by system calls instead: then a CPU may
 * be in the kernel when it would be told, and must make up for that on its way back. Faults are recovered by moving the saved instruction pointer to a label.
 * Readers only write through a translation where a stale store cannot hurt a kernel that forgot a flush.
 *
 * A stale access is counted, not fatal; the program then exits with 1 and says how many of how many were stale.
 */
#include "../include/faulting.h"
#include "../include/hand-over.h"
#include "../include/large-pages.h"
#include <pthread.h>
#include <sys/wait.h>

#define MOST_READERS 63
#define BATCH 64 /* pages that one fork serves */

/* ---- the hand-over between changer and readers ---- */

static struct board {
	struct line prepared, changed, touched[MOST_READERS], accessed[MOST_READERS];
	/* Counted by each reader: accesses that saw the old mapping, and touches that saw an even older one. */
	struct count {
		long stale, stale_touches;
	} __attribute__((aligned(64))) counts[MOST_READERS];
} *board;
static int readers;
static long calls;

/* ---- the cases ---- */

static long iterations;
static volatile long *page, *other_page; /* where the tested page lies, and where mremap moves it */
static volatile long *batch;		 /* the pages of a forking case */
static int child_says[2], child_hears[2];
static pid_t child = -1;

static void *map_at(volatile long *place, size_t length, int protection)
{
	int fixed = place ? MAP_FIXED : 0;
	void *memory = mmap((void *)place, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

/* A page with mapped neighbours, so that its table stays when it goes. */
static void place_among_neighbours(void)
{
	page = (volatile long *)((char *)map_at(NULL, 3 * PAGE, PROT_READ | PROT_WRITE) + PAGE);
	page[-1] = page[PAGE / sizeof(long)] = 1;
}

/* A page alone in its two megabytes, so that its table goes with it. */
static void place_alone(void)
{
	char *space = map_at(NULL, 6UL << 20, PROT_NONE);
	page = (volatile long *)(((uintptr_t)space + (4UL << 20) - 1) & ~((2UL << 20) - 1));
	check(munmap(space, 6UL << 20) == 0);
}

static void place_two(void)
{
	place_among_neighbours();
	other_page = (volatile long *)((char *)map_at(NULL, 3 * PAGE, PROT_READ | PROT_WRITE) + PAGE);
	other_page[-1] = other_page[PAGE / sizeof(long)] = 1;
}

static void place_batch(void)
{
	batch = map_at(NULL, BATCH * PAGE, PROT_READ | PROT_WRITE);
	check(pipe(child_says) == 0 && pipe(child_hears) == 0);
}

static volatile long *batch_page(long iteration)
{
	return batch + (iteration - 1) % BATCH * (PAGE / sizeof(long));
}

/* munmap: the page must be gone. */
static void prepare_fresh(long iteration)
{
	map_at(page, PAGE, PROT_READ | PROT_WRITE);
	*page = iteration;
}
static int touch_page(int reader, long iteration) { (void)reader; return load(page) == iteration; }
static void change_munmap(long iteration) { (void)iteration; check(munmap((void *)page, PAGE) == 0); }
static int access_is_gone(int reader, long iteration) { (void)reader, (void)iteration; return load(page) == FAULTED; }

/* mmap over it: the new page must be seen, which reads as zeros. */
static void change_mmap(long iteration) { (void)iteration; map_at(page, PAGE, PROT_READ | PROT_WRITE); }
static int access_is_zero(int reader, long iteration) { (void)reader, (void)iteration; return load(page) == 0; }

/* mprotect to read-only: stores must fault. The readers have stored before, so that their entry is dirty. */
static void prepare_writable(long iteration)
{
	check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
	page[100] = iteration;
}
static int touch_by_store(int reader, long iteration) { return store(&page[reader], iteration) == 0; }
static void change_read_only(long iteration) { (void)iteration; check(mprotect((void *)page, PAGE, PROT_READ) == 0); }
static int access_may_not_store(int reader, long iteration)
{
	return store(&page[reader], -iteration) == FAULTED && load(&page[reader]) == iteration && load(&page[100]) == iteration;
}

/* The same where some have only read the page, and now and then all: shared memory that is mapped anew, so that it may be
 * written and is not dirty. */
static void prepare_shared_fresh(long iteration)
{
	(void)iteration;
	int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
	check(mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == page);
}
static long stored_by(int reader, long iteration) { return (iteration + reader) % 5 == 1 ? iteration : 0; }
static int touch_sometimes_by_store(int reader, long iteration)
{
	long stored = stored_by(reader, iteration);
	return stored ? store(&page[reader], stored) == 0 : load(&page[reader]) == 0;
}
static int access_keeps_what_was_stored(int reader, long iteration)
{
	return store(&page[reader], -iteration) == FAULTED && load(&page[reader]) == stored_by(reader, iteration);
}

/* mprotect to nothing: loads must fault too. */
static void change_no_access(long iteration) { (void)iteration; check(mprotect((void *)page, PAGE, PROT_NONE) == 0); }

/* MADV_DONTNEED: zeros must be seen. */
static void prepare_value(long iteration) { *page = iteration; }
static void change_dontneed(long iteration) { (void)iteration; check(madvise((void *)page, PAGE, MADV_DONTNEED) == 0); }

/* mremap: gone from the old place, the value at the new one, which held another page until now. */
static void prepare_two(long iteration)
{
	prepare_fresh(iteration);
	*other_page = -iteration;
}
static int touch_two(int reader, long iteration) { (void)reader; return (load(page) == iteration) & (load(other_page) == -iteration); }
static void change_mremap(long iteration)
{
	(void)iteration;
	check(mremap((void *)page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other_page) == other_page);
}
static int access_moved(int reader, long iteration)
{
	(void)reader;
	return (load(page) == FAULTED) & (load(other_page) == iteration);
}

/* Large pages. Readers hold the whole of one, and touch a page in its middle. */
#define MIDDLE (100 * PAGE / sizeof(long))
static char *large, *other_large;

static void make_large(char *place)
{
	check(mmap(place, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
	check(madvise(place, LARGE, MADV_HUGEPAGE) == 0);
}

/* How many large pages there are at the place and its neighbours, which may be one area with it. */
static long large_pages(void)
{
	return large_kilobytes(large - LARGE, large + 2 * LARGE) / (long)(LARGE / 1024);
}

/* Between neighbours, so that no other table goes with it. */
static void place_large(void)
{
	char *space = map_aligned(3 * LARGE, PROT_READ | PROT_WRITE);
	space[LARGE - 1] = space[2 * LARGE] = 1;
	large = space + LARGE;
	make_large(large);
	page = (volatile long *)large + MIDDLE;
	*page = 1;
	check(large_pages() == 1);
}

static void place_to_collapse(void)
{
	place_large();
	check(pipe(child_says) == 0);
}

static void place_two_large(void)
{
	place_large();
	other_large = large;
	place_large();
	other_page = (volatile long *)other_large + MIDDLE;
}

static void prepare_large(long iteration)
{
	make_large(large);
	*page = iteration;
}
static void change_munmap_large(long iteration) { (void)iteration; check(munmap(large, LARGE) == 0); }
static void change_dontneed_large(long iteration) { (void)iteration; check(madvise(large, LARGE, MADV_DONTNEED) == 0); }

static void prepare_writable_large(long iteration)
{
	check(mprotect(large, LARGE, PROT_READ | PROT_WRITE) == 0);
	page[100] = iteration;
}
static void change_read_only_large(long iteration) { (void)iteration; check(mprotect(large, LARGE, PROT_READ) == 0); }

/* Forth, and back before the next time. */
static void prepare_two_large(long iteration)
{
	if (iteration > 1)
		check(mremap(other_large, LARGE, LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, large) == large);
	make_large(other_large);
	*page = iteration;
	*other_page = -iteration;
}
static void change_mremap_large(long iteration)
{
	(void)iteration;
	check(mremap(large, LARGE, LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, other_large) == other_large);
}

/* Small pages become a large one: whoever still held a small one would not see what is stored into the large one. */
static void prepare_small(long iteration)
{
	check(mmap(large, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == large);
	large[0] = 1;
	*page = iteration;
	if (iteration == 1)
		check(large_pages() == 0);
}
static void change_collapse(long iteration)
{
	check(madvise(large, LARGE, 25 /* MADV_COLLAPSE */) == 0);
	if (iteration == 1)
		check(large_pages() == 1);
	/* By the kernel, which finds the page in its tables: without a flush this thread too might still hold the small one. */
	long value = -iteration;
	check(write(child_says[1], &value, sizeof value) == sizeof value);
	check(read(child_says[0], (void *)page, sizeof value) == sizeof value);
}
static int access_negated(int reader, long iteration) { (void)reader; return load(page) == -iteration; }

/* The forking cases: a child holds a second reference to all pages of the batch while they are changed. */
static void end_child(void)
{
	if (child < 0)
		return;
	int status;
	check(write(child_hears[1], "e", 1) == 1);
	check(waitpid(child, &status, 0) == child && WIFEXITED(status));
	child = -1;
}

static void fork_child(long iteration)
{
	end_child();
	child = fork();
	check(child >= 0);
	if (child == 0) {
		char byte;
		/* The child looks at the batch when told to, and answers how many of the readers' words are not as at the fork. */
		while (read(child_hears[0], &byte, 1) == 1 && byte != 'e') {
			int different = 0;
			for (long i = iteration; i < iteration + BATCH; i++)
				for (int reader = 0; reader < readers; reader++)
					different += batch_page(i)[reader] != i;
			if (write(child_says[1], &different, sizeof different) != sizeof different)
				_exit(1);
		}
		_exit(0);
	}
}

static int starts_batch(long iteration)
{
	return (iteration - 1) % BATCH == 0;
}

/* Copy-on-write by the changer: the readers must see its new page. */
static void prepare_shared_copy(long iteration)
{
	if (!starts_batch(iteration))
		return;
	end_child();
	for (long i = iteration; i < iteration + BATCH; i++)
		batch_page(i)[0] = i;
	fork_child(iteration);
}
static int touch_batch(int reader, long iteration) { (void)reader; return load(batch_page(iteration)) == iteration; }
static void change_by_store(long iteration) { *batch_page(iteration) = -iteration; }
static int access_new_copy(int reader, long iteration) { (void)reader; return load(batch_page(iteration)) == -iteration; }

/* fork: what the readers store afterwards must not reach the child. One fork serves a batch: before it, each reader has stored into
 * every page, so that it holds dirty writable entries; after it, each iteration stores into one of them; at the end the child looks. */
static void prepare_for_fork(long iteration)
{
	if (!starts_batch(iteration))
		return;
	for (long i = iteration; i < iteration + BATCH; i++)
		for (int reader = 0; reader < readers; reader++)
			batch_page(i)[reader] = 0;
}
static int touch_batch_by_store(int reader, long iteration)
{
	int good = 1;
	if (starts_batch(iteration))
		for (long i = iteration; i < iteration + BATCH; i++)
			good &= store(batch_page(i) + reader, i) == 0;
	return good;
}
static void change_fork(long iteration)
{
	if (starts_batch(iteration))
		fork_child(iteration);
}
static int access_by_store(int reader, long iteration)
{
	volatile long *mine = batch_page(iteration) + reader;
	return load(mine) == iteration && store(mine, -iteration) == 0 && load(mine) == -iteration;
}
static long child_saw_change;
static void after_fork(long iteration)
{
	int different;
	if (iteration % BATCH != 0 && iteration != iterations)
		return;
	check(write(child_hears[1], "l", 1) == 1 && read(child_says[0], &different, sizeof different) == sizeof different);
	child_saw_change += different;
	end_child();
}

#include "guarded.h"

static const struct litmus {
	const char *name;
	void (*place)(void);
	void (*prepare)(long iteration);
	int (*touch)(int reader, long iteration);
	void (*change)(long iteration);
	int (*access)(int reader, long iteration);
	void (*after)(long iteration);
} cases[] = {
	{"munmap", place_among_neighbours, prepare_fresh, touch_page, change_munmap, access_is_gone, NULL},
	{"munmap-table", place_alone, prepare_fresh, touch_page, change_munmap, access_is_gone, NULL},
	{"mmap-over", place_among_neighbours, prepare_fresh, touch_page, change_mmap, access_is_zero, NULL},
	{"mprotect-down", place_among_neighbours, prepare_writable, touch_by_store, change_read_only, access_may_not_store, NULL},
	{"mprotect-clean", place_among_neighbours, prepare_shared_fresh, touch_sometimes_by_store, change_read_only, access_keeps_what_was_stored, NULL},
	{"mprotect-none", place_among_neighbours, prepare_writable, touch_by_store, change_no_access, access_is_gone, NULL},
	{"dontneed", place_among_neighbours, prepare_value, touch_page, change_dontneed, access_is_zero, NULL},
	{"mremap", place_two, prepare_two, touch_two, change_mremap, access_moved, NULL},
	{"large-munmap", place_large, prepare_large, touch_page, change_munmap_large, access_is_gone, NULL},
	{"large-munmap-part", place_large, prepare_large, touch_page, change_munmap, access_is_gone, NULL},
	{"large-dontneed", place_large, prepare_large, touch_page, change_dontneed_large, access_is_zero, NULL},
	{"large-mprotect-down", place_large, prepare_writable_large, touch_by_store, change_read_only_large, access_may_not_store, NULL},
	{"large-mremap", place_two_large, prepare_two_large, touch_two, change_mremap_large, access_moved, NULL},
	{"large-collapse", place_to_collapse, prepare_small, touch_page, change_collapse, access_negated, NULL},
	{"cow-write", place_batch, prepare_shared_copy, touch_batch, change_by_store, access_new_copy, NULL},
	{"fork-write", place_batch, prepare_for_fork, touch_batch_by_store, change_fork, access_by_store, after_fork},
	{"guard", place_watched, prepare_unguarded, touch_by_store, change_guard, access_may_not_store, NULL},
	{"guard-shared", place_watched_shared, prepare_unguarded, touch_by_store, change_guard_and_drop, access_may_not_store, NULL},
	{"guard-fork", place_watched_batch, prepare_unguarded_batch, touch_batch_by_store, change_guard_and_fork, access_guarded, after_fork},
};

static const struct litmus *litmus;
static int cpus[MOST_READERS + 1];

static void *read_always(void *argument)
{
	int self = (int)(long)argument;
	bind_to(cpus[self + 1]);
	for (long iteration = 1; iteration <= iterations; iteration++) {
		wait_for(&board->prepared, iteration);
		if (!litmus->touch(self, iteration))
			board->counts[self].stale_touches++;
		say(&board->touched[self], iteration);
		(calls ? wait_calling : wait_for)(&board->changed, iteration);
		if (!litmus->access(self, iteration))
			board->counts[self].stale++;
		say(&board->accessed[self], iteration);
	}
	return NULL;
}

static void change_always(void)
{
	for (long iteration = 1; iteration <= iterations; iteration++) {
		litmus->prepare(iteration);
		say(&board->prepared, iteration);
		wait_for_each(board->touched, readers, iteration);
		litmus->change(iteration);
		say(&board->changed, iteration);
		wait_for_each(board->accessed, readers, iteration);
		if (litmus->after)
			litmus->after(iteration);
	}
	end_child();
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"case", "iterations", "readers", "calls", NULL};
	only_options(argc, argv, options);
	const char *wanted = word_option(argc, argv, "case", "");
	iterations = number_option(argc, argv, "iterations", 1, 100000);
	calls = number_option(argc, argv, "calls", 0, 0);
	int available = allowed_cpus(cpus, MOST_READERS + 1);
	if (available < 2)
		refuse("at least two CPUs are needed, there is %d", available);
	readers = (int)number_option(argc, argv, "readers", 1, available - 1);
	if (readers > available - 1)
		refuse("--readers %d: there are only %d CPUs", readers, available);
	for (litmus = cases; litmus < cases + sizeof cases / sizeof *cases; litmus++)
		if (strcmp(litmus->name, wanted) == 0)
			break;
	if (litmus == cases + sizeof cases / sizeof *cases) {
		fputs("--case NAME is needed, one of:", stderr);
		for (litmus = cases; litmus < cases + sizeof cases / sizeof *cases; litmus++)
			fprintf(stderr, " %s", litmus->name);
		fputs("\n", stderr);
		return 2;
	}
	recover_from_faults();
	board = shared_memory(sizeof *board);
	litmus->place();
	bind_to(cpus[0]);
	pthread_t threads[MOST_READERS];
	for (long i = 0; i < readers; i++)
		check(pthread_create(&threads[i], NULL, read_always, (void *)i) == 0);
	change_always();
	long stale = child_saw_change, stale_touches = 0;
	for (int i = 0; i < readers; i++) {
		check(pthread_join(threads[i], NULL) == 0);
		stale += board->counts[i].stale;
		stale_touches += board->counts[i].stale_touches;
	}
	printf("case=%s readers=%d iterations=%ld stale=%ld stale_touches=%ld\n", litmus->name, readers, iterations, stale,
	       stale_touches);
	if (stale || stale_touches) {
		fflush(stdout);
		fail("%s: %ld of %ld accesses saw the old mapping", litmus->name, stale + stale_touches, iterations * readers);
	}
	puts("ok");
	return 0;
}
