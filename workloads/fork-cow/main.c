/* fork, and then the parent's first write to each of its pages, beside threads that read them; with 2, 4 and 8 threads as far as there
 * are CPUs. An operation is one first write; the fork before 64 of them is timed apart.
 *
 *     unread-N   N - 1 threads read all pages before the fork, and then spin
 *     read-N     they read them once more after the fork, so that they hold translations to the old pages
 *
 * Bound: the pages were writable when the threads read them, so fork must take that away from N - 1 CPUs in user mode: one
 * interrupt each, for 64 writes. A write then replaces the page; who read it since must be told, in the `read` case N - 1 for each
 * write. In the other case nobody can hold the page, for fork's flush was the last thing that happened to it: none.
 *
 * The threads must find the value of the round in every page, before and after the fork. The child waits until the parent has written,
 * so that all pages are still shared then, and must find all of them as they were at the fork. What the threads write is in
 * shared memory, for else their own pages would be copied as well.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGES 64
#define WORDS (PAGE / sizeof(long))

static volatile long *pages;
static long forks;
static uint64_t *fork_times;

/* What parent and readers say to each other: raised by the parent when `value` is to be read, and by each reader when it has. */
static struct board {
	long value;
	uint32_t asked;
	struct {
		uint32_t answered;
	} __attribute__((aligned(64))) reader[MOST_CPUS];
} *board;

static void *map_memory(size_t length, int flags)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static void *read_when_asked(void *self)
{
	uint32_t *answered = &board->reader[(long)self].answered, done = 0;
	take_place(self);
	while (!is_over()) {
		uint32_t asked = __atomic_load_n(&board->asked, __ATOMIC_ACQUIRE);
		if (asked != done) {
			for (int i = 0; i < PAGES; i++)
				if (pages[i * WORDS] != board->value)
					fail("another CPU reads %ld instead of %ld", pages[i * WORDS], board->value);
			done = asked;
			__atomic_store_n(answered, done, __ATOMIC_RELEASE);
		}
		relax();
	}
	return NULL;
}

static void let_others_read(int others, long value)
{
	board->value = value;
	uint32_t asked = __atomic_add_fetch(&board->asked, 1, __ATOMIC_RELEASE);
	for (int self = 1; self <= others; self++)
		while (__atomic_load_n(&board->reader[self].answered, __ATOMIC_ACQUIRE) != asked)
			relax();
}

/* The child: once the parent has written, everything must still be as it was at the fork. */
__attribute__((noreturn)) static void look_back(int written, long before)
{
	char byte;
	check(read(written, &byte, 1) == 1);
	for (int i = 0; i < PAGES; i++)
		if (pages[i * WORDS] != before)
			fail("the child finds %ld in page %d, which held %ld at the fork", pages[i * WORDS], i, before);
	_exit(0);
}

static void fork_and_write(struct measurement *writes, long round, int others, int read_again, const int written[2])
{
	let_others_read(others, round);
	uint64_t start = nanoseconds();
	pid_t child = fork();
	check(child >= 0);
	if (child == 0)
		look_back(written[0], round);
	fork_times[round] = nanoseconds() - start;
	if (read_again)
		let_others_read(others, round);
	resume_clock(writes);
	for (int i = 0; i < PAGES; i++)
		pages[i * WORDS] = round + 1;
	pause_clock(writes);
	int status;
	check(write(written[1], "w", 1) == 1 && waitpid(child, &status, 0) == child);
	if (status != 0)
		fail("round %ld: the child ended with %x", round, status);
}

static void measure(int threads, int read_again)
{
	int written[2];
	check(pipe(written) == 0);
	memset(board, 0, sizeof *board);
	for (int i = 0; i < PAGES; i++)
		pages[i * WORDS] = 0;
	start_beside(threads - 1, read_when_asked);
	struct measurement writes = begin_with_clock_paused("TLB:");
	for (long round = 0; round < forks; round++)
		fork_and_write(&writes, round, threads - 1, read_again, written);
	end_with_clock_paused(&writes);
	end_beside();
	close(written[0]);
	close(written[1]);
	char name[32], figures[64];
	snprintf(name, sizeof name, "%s-%d", read_again ? "read" : "unread", threads);
	snprintf(figures, sizeof figures, " fork_ns=%llu", (unsigned long long)median(fork_times, (size_t)forks));
	double others = threads - 1;
	print_measurement(&writes, name, threads, forks * PAGES, others / PAGES + (read_again ? others : 0), figures);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"forks", "threads", NULL};
	only_options(argc, argv, options);
	forks = number_option(argc, argv, "forks", 1, 30);
	take_first_cpu();
	int wanted = threads_option(argc, argv);
	if (cpu_count < 2 || wanted == 1)
		refuse("readers need CPUs of their own: two CPUs and two threads at least");
	fork_times = calloc((size_t)forks, sizeof *fork_times);
	check(fork_times);
	board = map_memory(sizeof *board, MAP_SHARED);
	pages = map_memory(PAGES * PAGE, MAP_PRIVATE);
	for (int threads = 2; threads <= cpu_count && threads <= 8; threads *= 2)
		for (int read_again = 0; read_again < 2; read_again++)
			if (!wanted || wanted == threads)
				measure(threads, read_again);
	puts("ok");
	return 0;
}
