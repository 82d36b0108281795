/* mremap of mappings that are larger than what one page table maps (2 MiB): such tables move as a whole.
 *
 * alone           one thread moves, grows, shrinks and copies a sparse mapping at random, aligned to tables and not, and compares all
 *                 that it knows with what is there after each step; what was left must fault
 * beside-writers  a thread moves a mapping to and fro while others count in it, at whichever of the two places they find it: no count
 *                 may be lost, and a place that has been left must fault on every CPU as soon as mremap has returned
 * beside-forks    the same while another thread forks: a child finds the whole mapping at one place, and nothing at the other
 * middle          a page of a file is taken out of the middle of its mapping and put back, between neighbours that it may become one area with or
 *                 not: every page shows what the file has there (Linux 6.3 showed another one: 7e7757876f25)
 * errors          what cannot be done has Linux's errno, and leaves everything as it was
 */
#include "../include/expected-errors.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define TABLE (512 * PAGE)
#define MOST_WRITERS 7

static __thread sigjmp_buf back;
static __thread volatile int expects_fault;

static void on_fault(int number)
{
	if (expects_fault)
		siglongjmp(back, 1);
	/* Nobody tried: the instruction is made again, and ends the program. */
	signal(number, SIG_DFL);
}

/* Whether the word can be read; it goes to `found`. */
static int try_load(volatile long *word, long *found)
{
	volatile int succeeded = 0;
	expects_fault = 1;
	if (!sigsetjmp(back, 0)) {
		*found = *word;
		succeeded = 1;
	}
	expects_fault = 0;
	return succeeded;
}

static int try_store(volatile long *word, long value)
{
	volatile int succeeded = 0;
	expects_fault = 1;
	if (!sigsetjmp(back, 0)) {
		*word = value;
		succeeded = 1;
	}
	expects_fault = 0;
	return succeeded;
}

/* A place of so many bytes whose start is aligned to what a table maps. */
static char *aligned_place(size_t length)
{
	char *place = mmap(NULL, length + TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(place != MAP_FAILED);
	return (char *)(((uintptr_t)place + TABLE - 1) / TABLE * TABLE);
}

static void map_at(char *place, size_t length, int flags)
{
	flags |= MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	check(mmap(place, length, READ_WRITE, flags, -1, 0) == place);
}

/* ---- alone ---- */

#define MOST_TABLES 6
#define SAMPLES 24

static uint64_t random_state;

static uint64_t below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % limit;
}

/* A page whose content is known, by its distance from the mapping's start. */
static struct sample {
	size_t offset;
	long content;
} samples[SAMPLES];

static void compare(char *mapping, size_t length, const char *after)
{
	for (int i = 0; i < SAMPLES; i++)
		if (samples[i].offset < length && *(long *)(mapping + samples[i].offset) != samples[i].content)
			fail("after %s, the page at offset %#zx holds %ld, not %ld", after, samples[i].offset,
			     *(long *)(mapping + samples[i].offset), samples[i].content);
}

static void must_be_gone(char *place, size_t length)
{
	long found;
	for (int i = 0; i < SAMPLES; i++)
		if (samples[i].offset < length && try_load((long *)(place + samples[i].offset), &found))
			fail("the place that was left still has a page at offset %#zx", samples[i].offset);
}

static void write_samples(char *mapping, size_t length)
{
	for (int i = 0; i < SAMPLES; i++) {
		/* Often beside the edge of a table. */
		size_t edge = below(MOST_TABLES) * TABLE;
		size_t offset = below(2) ? edge + below(3) * PAGE : below(MOST_TABLES * 512) * PAGE;
		samples[i] = (struct sample){offset % length, 0};
		for (int other = 0; other < i; other++)
			if (samples[other].offset == samples[i].offset)
				samples[i].offset = MOST_TABLES * TABLE; /* outside: not looked at */
		if (samples[i].offset < length)
			*(long *)(mapping + samples[i].offset) = samples[i].content = below(1 << 30);
	}
}

static void alone(long steps)
{
	size_t room = MOST_TABLES * TABLE;
	char *places[2] = {aligned_place(room + 16 * PAGE), aligned_place(room + 16 * PAGE)};
	for (long step = 0; step < steps; step++) {
		/* Half of the moves are aligned alike, and half of these to tables. */
		size_t shift = below(2) ? 0 : below(16) * PAGE, other_shift = below(2) ? shift : below(16) * PAGE;
		size_t length = below(2) ? (1 + below(MOST_TABLES - 1)) * TABLE : (1 + below((MOST_TABLES - 1) * 512)) * PAGE;
		char *from = places[step % 2] + shift, *to = places[(step + 1) % 2] + other_shift;
		int sharing = below(3) ? MAP_PRIVATE : MAP_SHARED;
		map_at(from, length, sharing);
		write_samples(from, length);
		if (below(4) == 0)
			check(mprotect(from, length, PROT_READ) == 0);
		size_t new_length = below(3) ? length : (1 + below(room / PAGE - 1)) * PAGE;
		int keep = below(8) == 0 && new_length == length;
		int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (keep ? MREMAP_DONTUNMAP : 0);
		char *moved = mremap(from, length, new_length, flags, to);
		if (moved == MAP_FAILED && keep && errno == EINVAL) {
			/* Linux before 5.13 keeps private mappings only. */
			moved = mremap(from, length, new_length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
			keep = 0;
		}
		check(moved == to);
		compare(to, new_length < length ? new_length : length, "a move");
		if (!keep)
			must_be_gone(from, length);
		/* What is shared ends where it ended. */
		if (new_length > length && sharing == MAP_PRIVATE)
			check(*(volatile long *)(to + length) == 0);
		check(munmap(from, length) == 0 && munmap(to, new_length) == 0);
	}
	printf("part=alone moves=%ld\n", steps);
}

/* ---- beside writers ---- */

static char *places[2];
static size_t moved_length;
static volatile int stop;
static long counts[MOST_WRITERS];
/* Which place has been left, or -1 while a move may be under way; and how often that has changed. */
static volatile long left = -1, turn;

/* Each writer has a word of its own, in the first page of one of the tables. */
static volatile long *word_at(int place, long writer)
{
	return (long *)(places[place] + (size_t)(writer % MOST_TABLES) * TABLE) + writer;
}

static void check_left(long writer)
{
	long found, before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE), place = __atomic_load_n(&left, __ATOMIC_ACQUIRE);
	if (place < 0 || !try_load(word_at((int)place, writer), &found))
		return;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == before)
		fail("a place that mremap has left can still be read");
}

static void *count_in_it(void *argument)
{
	long writer = (long)argument;
	int place = 0;
	while (!stop) {
		if (!try_store(word_at(place, writer), counts[writer] + 1)) {
			place = !place;
			relax();
			continue;
		}
		counts[writer]++;
		check_left(writer);
		long found;
		for (int at = 0; at < 2; at++)
			if (try_load(word_at(at, writer), &found) && found != counts[writer])
				fail("a store was lost: thread %ld finds %ld, not %ld", writer, found, counts[writer]);
	}
	return NULL;
}

static void move_to(int place)
{
	check(mremap(places[!place], moved_length, moved_length, MREMAP_MAYMOVE | MREMAP_FIXED, places[place]) == places[place]);
	__atomic_store_n(&left, !place, __ATOMIC_RELEASE);
	__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
}

static void before_a_move(void)
{
	__atomic_store_n(&left, -1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
}

/* The other place stays taken, without any right, until the first move replaces it: the stacks of threads would fit there. */
static void prepare_places(int flags)
{
	moved_length = MOST_TABLES * TABLE;
	for (int place = 0; place < 2; place++)
		places[place] = aligned_place(moved_length);
	map_at(places[0], moved_length, flags);
	left = -1;
}

static void beside_writers(long rounds, int writers, int flags)
{
	pthread_t threads[MOST_WRITERS];
	prepare_places(flags);
	memset(counts, 0, sizeof counts);
	stop = 0;
	for (long i = 0; i < writers; i++)
		check(pthread_create(&threads[i], NULL, count_in_it, (void *)i) == 0);
	for (long round = 0; round < rounds; round++) {
		before_a_move();
		move_to((round + 1) % 2);
		/* A while in which the place that was left is looked at, and the other one written. */
		for (long i = 0; i < 200; i++)
			relax();
		sched_yield();
	}
	stop = 1;
	for (long i = 0; i < writers; i++)
		check(pthread_join(threads[i], NULL) == 0);
	long all = 0;
	for (long i = 0; i < writers; i++) {
		check(*word_at(rounds % 2, i) == counts[i]);
		all += counts[i];
	}
	check(munmap(places[rounds % 2], moved_length) == 0);
	printf("part=beside-writers moves=%ld stores=%s\n", rounds, all ? "some" : "none");
}

/* ---- beside forks ---- */

static void *move_to_and_fro(void *argument)
{
	(void)argument;
	long round = 0;
	for (; !stop || round % 2; round++) {
		move_to((round + 1) % 2);
		sched_yield();
	}
	return NULL;
}

static void child(void)
{
	long found;
	int at = try_load(word_at(0, 0), &found) ? 0 : 1;
	for (int table = 0; table < MOST_TABLES; table++)
		if (!try_load(word_at(at, table), &found) || found != table + 1)
			_exit(2);
		else if (try_load(word_at(!at, table), &found))
			_exit(3);
		else if (!try_store(word_at(at, table), -1))
			_exit(4);
	_exit(0);
}

static void beside_forks(long forks)
{
	pthread_t mover;
	prepare_places(MAP_PRIVATE);
	for (int table = 0; table < MOST_TABLES; table++)
		*word_at(0, table) = table + 1;
	stop = 0;
	check(pthread_create(&mover, NULL, move_to_and_fro, NULL) == 0);
	for (long i = 0; i < forks; i++) {
		pid_t process = fork();
		check(process >= 0);
		if (process == 0)
			child();
		int status;
		check(waitpid(process, &status, 0) == process);
		if (status != 0)
			fail("a child that was forked beside a move ended with status %#x", (unsigned)status);
	}
	stop = 1;
	check(pthread_join(mover, NULL) == 0);
	for (int table = 0; table < MOST_TABLES; table++)
		check(*word_at(0, table) == table + 1);
	check(munmap(places[0], moved_length) == 0);
	printf("part=beside-forks forks=%ld\n", forks);
}

/* ---- out of the middle and back ---- */

static void middle(void)
{
	static const int changed[] = {-1, 2, 0};
	int file = memfd_create("middle", MFD_CLOEXEC), fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
	for (long page = 0; page < 4; page++)
		check(pwrite(file, &page, sizeof page, page * (long)PAGE) == sizeof page);
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
		char *pages = mmap(NULL, 4 * PAGE, READ_WRITE, MAP_SHARED, file, 0), *aside = pages + 3 * PAGE;
		check(pages != MAP_FAILED && mremap(pages + PAGE, PAGE, PAGE, fixed, aside) == aside);
		if (changed[i] >= 0)
			check(mprotect(pages + changed[i] * PAGE, PAGE, PROT_READ) == 0);
		check(mremap(aside, PAGE, PAGE, fixed, pages + PAGE) == pages + PAGE);
		/* Nothing has been touched yet, so that it is the areas that say which page lies where. */
		for (long page = 0; page < 3; page++)
			if (*(long *)(pages + page * PAGE) != page)
				fail("page %ld of a file shows page %ld", page, *(long *)(pages + page * PAGE));
		check(munmap(pages, 3 * PAGE) == 0);
	}
	check(close(file) == 0);
	puts("part=middle");
}

/* ---- errors ---- */

static void errors(void)
{
	char *from = aligned_place(8 * TABLE), *to = aligned_place(8 * TABLE);
	map_at(from, 4 * TABLE, MAP_PRIVATE);
	write_samples(from, 4 * TABLE);
	int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
	EXPECT(EINVAL, mremap(from, 4 * TABLE, 4 * TABLE, fixed, from + 2 * TABLE));
	EXPECT(EINVAL, mremap(from + 2 * TABLE, 2 * TABLE, 4 * TABLE, fixed, from));
	EXPECT(EINVAL, mremap(from, 4 * TABLE, 4 * TABLE, fixed, to + 1));
	EXPECT(EINVAL, mremap(from, 4 * TABLE, 1UL << 47, fixed, to));
	EXPECT(EINVAL, mremap(from, 4 * TABLE, 0, fixed, to));
	EXPECT(EINVAL, mremap(from, 0, 4 * TABLE, fixed, to));
	EXPECT(ENOMEM, mremap(from, 2 * TABLE, 3 * TABLE, 0));
	/* Read-only from its third table on: two mappings. */
	check(mprotect(from + 2 * TABLE, 2 * TABLE, PROT_READ) == 0);
	EXPECT(EFAULT, mremap(from, 4 * TABLE, 4 * TABLE, fixed, to));
	check(mprotect(from + 2 * TABLE, 2 * TABLE, READ_WRITE) == 0);
	struct rlimit limit, tight;
	check(getrlimit(RLIMIT_AS, &limit) == 0);
	tight = (struct rlimit){64 * TABLE, limit.rlim_max};
	check(setrlimit(RLIMIT_AS, &tight) == 0);
	EXPECT(ENOMEM, mremap(from, 4 * TABLE, 128 * TABLE, MREMAP_MAYMOVE));
	check(setrlimit(RLIMIT_AS, &limit) == 0);
	compare(from, 4 * TABLE, "what could not be done");
	check(mremap(from, 4 * TABLE, 4 * TABLE, fixed, to) == to);
	compare(to, 4 * TABLE, "all errors");
	puts("part=errors");
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"seed", "steps", "rounds", "forks", "writers", NULL};
	only_options(argc, argv, options);
	random_state = (uint64_t)number_option(argc, argv, "seed", 0, 1);
	long steps = number_option(argc, argv, "steps", 1, 60), rounds = number_option(argc, argv, "rounds", 2, 40);
	long forks = number_option(argc, argv, "forks", 1, 10), writers = number_option(argc, argv, "writers", 1, 2);
	if (writers > MOST_WRITERS)
		refuse("--writers %ld: at most %d", writers, MOST_WRITERS);
	check(setvbuf(stdout, NULL, _IOLBF, 0) == 0);
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
	check(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
	alone(steps);
	beside_writers(rounds, (int)writers, MAP_PRIVATE);
	beside_writers(rounds, (int)writers, MAP_SHARED);
	beside_forks(forks);
	middle();
	errors();
	puts("ok");
	return 0;
}
