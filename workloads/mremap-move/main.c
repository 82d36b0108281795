/* S4's load: threads that move mappings with mremap, back and forth, and check their contents.
 *
 * Each thread has a CPU, a source and a target place of its own. The pages are anonymous, shared, or of a file; all are dirty, so that
 * nothing may be written out or reused through a stale entry while a move is under way. Measured are 16 pages moved by 1, 2, 4 and 8
 * threads, as far as there are CPUs, and before that 64 MB moved by the program's only thread. Then one thread moves pieces of 64 KiB to 64 MiB
 * while the others run user code of their own and take whatever interrupts it costs. Source and target lie alike, three pages behind a border of
 * 2 MiB, and have neighbours, so that no page table is freed.
 *
 * Bound: a move takes translations away that only the moving thread's CPU can hold, as no other thread uses them: none.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <sys/mman.h>

#define LARGE 16384 /* pages of 64 MB */
#define TABLE (2UL << 20) /* what one page table maps */

enum kind { ANONYMOUS, SHARED, FILE_PAGES, KINDS };
static const char *const kind_names[] = {"anonymous", "shared", "file"};

static enum kind kind;
static long moves, pages;
static pthread_barrier_t barrier;
static struct measurement measured;

static char *map_source(long self)
{
	size_t length = (size_t)pages * PAGE;
	int protection = PROT_READ | PROT_WRITE;
	if (kind == ANONYMOUS)
		return mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (kind == SHARED)
		return mmap(NULL, length, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[64];
	snprintf(name, sizeof name, "/tmp/mremap-move-%d-%ld", getpid(), self);
	int file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		fail("%s: %s", name, strerror(errno));
	check(ftruncate(file, (off_t)length) == 0 && unlink(name) == 0);
	char *memory = mmap(NULL, length, protection, MAP_SHARED, file, 0);
	close(file);
	return memory;
}

/* Moves the pages from `here` to `there`, after a write to each; every one must arrive as it was. */
static void move_once(char *here, char *there, long before)
{
	size_t length = (size_t)pages * PAGE;
	for (size_t at = 0; at < length; at += PAGE)
		*(volatile long *)(here + at) += 1;
	check(mremap(here, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
	for (size_t at = 0; at < length; at += PAGE)
		if (*(volatile long *)(there + at) != before + 1)
			fail("page %zu holds %ld instead of %ld after a move", at / PAGE, *(volatile long *)(there + at), before + 1);
}

/* What each mover does; the first one is the main thread, which also measures. */
static void *move(void *argument)
{
	long self = (long)argument;
	size_t length = (size_t)pages * PAGE;
	bind_to(cpus[self]);
	char *here = map_source(self), *there = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(here != MAP_FAILED && there != MAP_FAILED);
	for (size_t at = 0; at < length; at += PAGE)
		*(volatile long *)(here + at) = self;
	pthread_barrier_wait(&barrier); /* nobody maps anything any more: a place that is left stays free */
	/* Once to and fro before it counts: a CPU that this program has just left is told when tables are freed, once. */
	move_once(here, there, self);
	move_once(there, here, self + 1);
	pthread_barrier_wait(&barrier); /* all have prepared */
	struct measurement loop = {0};
	if (self == 0)
		loop = begin("TLB:");
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < moves; i++) {
		move_once(here, there, self + 2 + i);
		char *old = here;
		here = there;
		there = old;
	}
	pthread_barrier_wait(&barrier); /* all have ended */
	if (self == 0) {
		end(&loop);
		measured = loop;
	}
	check(munmap(here, length) == 0);
	return NULL;
}

static void measure(int threads, enum kind of, long with_pages, long with_moves)
{
	pthread_t movers[MOST_CPUS];
	kind = of;
	pages = with_pages;
	moves = with_moves;
	check(pthread_barrier_init(&barrier, NULL, (unsigned)threads) == 0);
	for (long i = 1; i < threads; i++)
		check(pthread_create(&movers[i], NULL, move, (void *)i) == 0);
	move((void *)0);
	for (long i = 1; i < threads; i++)
		check(pthread_join(movers[i], NULL) == 0);
	check(pthread_barrier_destroy(&barrier) == 0);
	char name[64];
	snprintf(name, sizeof name, "%s-%sthreads-%d", kind_names[of], pages == LARGE ? "64mb-" : "", threads);
	print_measurement(&measured, name, threads, moves * threads, 0, "");
}

/* What one thread moves beside others: not only what fits into one page table. */
static const struct size {
	const char *name;
	long pages;
	int is_large;
} sizes[] = {{"64kb", 16, 0}, {"256kb", 64, 0}, {"2mb", 512, 1}, {"64mb", LARGE, 1}};

static char *map_neighbour(char *place)
{
	char *memory = mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	check(memory == place);
	*memory = 1;
	return memory;
}

static void measure_beside(int threads, const struct size *size, long with_moves)
{
	pages = size->pages;
	size_t length = (size_t)pages * PAGE, room = (length / TABLE + 2) * TABLE;
	char *space = mmap(NULL, 2 * room + TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(space != MAP_FAILED);
	char *places[2];
	for (int end = 0; end < 2; end++) {
		char *border = (char *)(((uintptr_t)space + TABLE - 1) & ~(TABLE - 1)) + (size_t)end * room;
		places[end] = map_neighbour(border) + 3 * PAGE;
		map_neighbour(places[end] + length + PAGE);
	}
	check(mmap(places[0], length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == places[0]);
	for (size_t at = 0; at < length; at += PAGE)
		*(volatile long *)(places[0] + at) = 0;
	start_beside(threads - 1, spin);
	move_once(places[0], places[1], 0);
	move_once(places[1], places[0], 1);
	struct measurement loop = begin("TLB:");
	for (long i = 0; i < with_moves; i++)
		move_once(places[i % 2], places[(i + 1) % 2], 2 + i);
	end(&loop);
	end_beside();
	check(munmap(space, 2 * room + TABLE) == 0);
	char name[64];
	snprintf(name, sizeof name, "beside-%s-threads-%d", size->name, threads);
	print_measurement(&loop, name, threads, with_moves, 0, "");
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"moves", "large-moves", "kind", NULL};
	only_options(argc, argv, options);
	long small = number_option(argc, argv, "moves", 1, 1000), large = number_option(argc, argv, "large-moves", 1, 4);
	const char *wanted = word_option(argc, argv, "kind", "all");
	int known = strcmp(wanted, "all") == 0 || strcmp(wanted, "beside") == 0;
	for (int of = 0; of < KINDS; of++)
		known |= strcmp(wanted, kind_names[of]) == 0;
	if (!known)
		refuse("--kind %s: one of all, anonymous, shared, file, beside", wanted);
	take_first_cpu();
	for (enum kind of = 0; of < KINDS; of++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, kind_names[of]) == 0)
			measure(1, of, LARGE, large);
	for (enum kind of = 0; of < KINDS; of++)
		for (int threads = 1; threads <= cpu_count && threads <= 8; threads *= 2)
			if (strcmp(wanted, "all") == 0 || strcmp(wanted, kind_names[of]) == 0)
				measure(threads, of, 16, small);
	for (size_t of = 0; of < sizeof sizes / sizeof *sizes; of++)
		for (int threads = 2; threads <= cpu_count && threads <= 8; threads *= 2)
			if (strcmp(wanted, "all") == 0 || strcmp(wanted, "beside") == 0)
				measure_beside(threads, &sizes[of], sizes[of].is_large ? large : small);
	puts("ok");
	return 0;
}
