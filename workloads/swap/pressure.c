/* More memory than there is: two processes that use half of it each, and one that wants more than memory and swap have. */
#include "swap.h"
#include <signal.h>

enum { ROUNDS = 3, LONGEST = 1000 };

struct shared {
	/* The longest that one page took, in microseconds. */
	volatile uint64_t longest[2];
};

static uint64_t next_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Fills all, then checks and fills again, page after page and here and there. */
static void work(struct shared *shared, int self, long pages)
{
	unsigned char *memory = memory_of(pages);
	uint64_t chance = 0x9e3779b97f4a7c15 + (uint64_t)self, longest = 0, before = nanoseconds();
	unsigned char *rounds = calloc(pages, 1);
	check(rounds);
	for (int round = 0; round < ROUNDS; round++)
		for (long i = 0; i < pages; i++) {
			long page = round < 2 ? i : (long)(next_of(&chance) % pages);
			unsigned char *place = memory + page * PAGE;
			if (round > 0)
				expect_page(place, page * 2 + self, rounds[page]);
			if (round == 0 || next_of(&chance) % 2) {
				rounds[page]++;
				fill_page(place, page * 2 + self, rounds[page]);
			}
			uint64_t now = nanoseconds();
			if (now - before > longest)
				longest = now - before;
			before = now;
		}
	for (long page = 0; page < pages; page++)
		expect_page(memory + page * PAGE, page * 2 + self, rounds[page]);
	shared->longest[self] = longest / 1000;
}

void pressure(long mebibytes)
{
	make_swap(0);
	check(swapon(DISK, 0) == 0);
	struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	pid_t children[2];
	for (int self = 0; self < 2; self++) {
		children[self] = fork();
		check(children[self] >= 0);
		if (children[self] == 0) {
			work(shared, self, mebibytes * 128);
			_exit(0);
		}
	}
	for (int self = 0; self < 2; self++) {
		int ended;
		check(waitpid(children[self], &ended, 0) == children[self]);
		if (ended != 0)
			fail("process %d ended with %#x", self, ended);
	}
	printf("longest_milliseconds=%lu,%lu pswpout=%ld pswpin=%ld\n", (unsigned long)shared->longest[0] / 1000,
	       (unsigned long)shared->longest[1] / 1000, count("pswpout"), count("pswpin"));
	for (int self = 0; self < 2; self++)
		if (shared->longest[self] > LONGEST * 1000)
			fail("process %d stood still for %lu ms", self, (unsigned long)shared->longest[self] / 1000);
	check(count("pswpout") > 0 && count("pswpin") > 0);
	check(swapoff(DISK) == 0);
}

/* A child wants more than there is, and is killed when memory and swap are gone, and not before; the rest is as it was. */
void full(long mebibytes)
{
	enum { KEPT = 1000 };
	long slots = make_swap(0);
	check(swapon(DISK, 0) == 0);
	unsigned char *kept = memory_of(KEPT);
	for (long page = 0; page < KEPT; page++)
		fill_page(kept + page * PAGE, page, 1);
	struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	long before = information("MemFree");
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		long pages = mebibytes * 256;
		for (long part = 0; part < pages; part += 256) {
			unsigned char *memory = memory_of(256);
			for (long page = 0; page < 256; page++)
				fill_page(memory + page * PAGE, part + page, 1);
			shared->longest[0] = (uint64_t)(part + 256);
		}
		_exit(0);
	}
	int ended;
	check(waitpid(child, &ended, 0) == child);
	if (!WIFSIGNALED(ended) || WTERMSIG(ended) != SIGKILL)
		fail("it was not killed, but ended with %#x", ended);
	/* What it had got before. */
	long got = (long)shared->longest[0];
	printf("got=%ld slots=%ld free_before=%ld\n", got, slots, before);
	/* Some of memory is kept for whoever must go on. */
	if (got < slots + before - before / 8)
		fail("it was killed after %ld pages, with %ld in swap and %ld in memory", got, slots, before);
	for (long page = 0; page < KEPT; page++)
		expect_page(kept + page * PAGE, page, 1);
	check(swapoff(DISK) == 0);
	for (long page = 0; page < KEPT; page++)
		expect_page(kept + page * PAGE, page, 1);
}
