/* A pool of threads that map, touch, unmap and check what they read.
 *
 * Every page carries words that say where it should be and who wrote it. Threads pass regions on to each other, so that a region is
 * mapped by one, written by a second, changed (protected, moved, dropped, shared, shrunk) by a third and unmapped by a fourth, all
 * in one address space at once. Whoever finds a word that was not written for this place and time has seen a stale translation, a
 * page that was given out twice or one that was not cleared.
 */
#include "../include/workload.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define SLOTS 24
#define MOST_PAGES 40
#define WORDS (PAGE / sizeof(uint64_t))

/* One region; whoever holds the lock may do anything with it. `marks[i]` is the mark of page i, 0 if the page must read as zeros. */
struct slot {
	pthread_mutex_t lock;
	volatile uint64_t *base;
	size_t pages;
	int shared;
	int pieces; /* may be several areas by now, which mremap rightly refuses to move */
	uint64_t marks[MOST_PAGES];
};

static struct slot slots[SLOTS];
static long rounds;
static uint64_t next_mark = 1;
static long done[9], moves, refused_moves;
static __thread sigjmp_buf recovery;
static __thread volatile uintptr_t expected_fault;

static void on_fault(int signal, siginfo_t *information, void *context)
{
	(void)context;
	if ((uintptr_t)information->si_addr != expected_fault || information->si_code != SEGV_ACCERR)
		end_with(1, "an unexpected fault at %p, code %d", information->si_addr, information->si_code);
	siglongjmp(recovery, signal);
}

/* A small generator of its own for each thread: the same run for the same number of threads and rounds. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t word(uint64_t mark, size_t page, size_t index)
{
	return mark ? (mark << 24) ^ (page << 12) ^ index : 0;
}

static void verify(struct slot *slot, const char *after)
{
	for (size_t page = 0; page < slot->pages; page++)
		for (size_t i = page % 7; i < WORDS; i += 73) {
			uint64_t read = slot->base[page * WORDS + i];
			if (read != word(slot->marks[page], page, i))
				fail("%s: page %zu of %p, word %zu: read %llx, expected %llx", after, page, (void *)slot->base, i,
				     (unsigned long long)read, (unsigned long long)word(slot->marks[page], page, i));
		}
}

static void fill(struct slot *slot, size_t page)
{
	slot->marks[page] = __atomic_fetch_add(&next_mark, 1, __ATOMIC_RELAXED);
	for (size_t i = page % 7; i < WORDS; i += 73)
		slot->base[page * WORDS + i] = word(slot->marks[page], page, i);
}

static void map(struct slot *slot, uint64_t *state)
{
	slot->pages = 1 + draw(state) % MOST_PAGES;
	slot->shared = draw(state) % 4 == 0;
	int flags = MAP_ANONYMOUS | (slot->shared ? MAP_SHARED : MAP_PRIVATE);
	if (draw(state) % 4 == 0)
		flags |= MAP_POPULATE;
	slot->base = mmap(NULL, slot->pages * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	check(slot->base != MAP_FAILED);
	slot->pieces = 0;
	memset(slot->marks, 0, sizeof slot->marks);
}

static void unmap(struct slot *slot)
{
	check(munmap((void *)slot->base, slot->pages * PAGE) == 0);
	slot->base = NULL;
}

/* Takes a page's pages away with MADV_DONTNEED: private ones must read as zeros, shared ones keep what they hold. */
static void drop(struct slot *slot, size_t first, size_t count)
{
	check(madvise((char *)slot->base + first * PAGE, count * PAGE, MADV_DONTNEED) == 0);
	if (!slot->shared)
		memset(&slot->marks[first], 0, count * sizeof *slot->marks);
}

/* Makes part of it read-only: a write must fault, reads go on. */
static void protect(struct slot *slot, size_t first, size_t count)
{
	char *start = (char *)slot->base + first * PAGE;
	check(mprotect(start, count * PAGE, PROT_READ) == 0);
	verify(slot, "mprotect to read-only");
	expected_fault = (uintptr_t)start + 8;
	if (sigsetjmp(recovery, 1) == 0) {
		*(volatile uint64_t *)(start + 8) = 0xdead;
		fail("a write to a page that was just made read-only went through");
	}
	check(mprotect(start, count * PAGE, PROT_READ | PROT_WRITE) == 0);
	fill(slot, first);
}

/* mremap refuses (EFAULT) what a kernel keeps as several areas. Neighbouring regions can bring that about now and then without any
 * doing of this slot, so a few refusals are right; main checks that they are few. */
static void move(struct slot *slot, uint64_t *state)
{
	size_t pages = 1 + draw(state) % MOST_PAGES;
	if (slot->shared && pages > slot->pages)
		pages = slot->pages;
	void *base, *target = NULL;
	__atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
	if (draw(state) % 2) {
		target = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		check(target != MAP_FAILED);
		*(volatile uint64_t *)target = 0xbad;
		base = mremap((void *)slot->base, slot->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
	} else {
		base = mremap((void *)slot->base, slot->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
	}
	if (base == MAP_FAILED) {
		check(errno == EFAULT);
		__atomic_fetch_add(&refused_moves, 1, __ATOMIC_RELAXED);
		/* The target may be gone already and its place taken by another thread: it is left alone. */
		unmap(slot);
		return;
	}
	check(target == NULL || base == target);
	for (size_t page = slot->pages; page < pages; page++)
		slot->marks[page] = 0;
	slot->base = base;
	slot->pages = pages;
}

/* A hole in the middle is unmapped and mapped anew in one step. */
static void replace(struct slot *slot, size_t first, size_t count)
{
	int flags = MAP_ANONYMOUS | MAP_FIXED | (slot->shared ? MAP_SHARED : MAP_PRIVATE);
	char *start = (char *)slot->base + first * PAGE;
	check(mmap(start, count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == start);
	memset(&slot->marks[first], 0, count * sizeof *slot->marks);
	slot->pieces = 1;
}

static void *work(void *argument)
{
	uint64_t state = 0x9e3779b97f4a7c15ull * (uint64_t)((long)argument + 1);
	for (long round = 0; round < rounds; round++) {
		struct slot *slot = &slots[draw(&state) % SLOTS];
		check(pthread_mutex_lock(&slot->lock) == 0);
		int operation = (int)(draw(&state) % 9);
		if (!slot->base) {
			map(slot, &state);
			verify(slot, "a fresh mapping");
		}
		size_t first = draw(&state) % slot->pages, count = 1 + draw(&state) % (slot->pages - first);
		verify(slot, "a thread that took over");
		switch (operation) {
		case 0:
		case 1:
		case 2:
			for (size_t page = first; page < first + count; page++)
				fill(slot, page);
			break;
		case 3:
			unmap(slot);
			break;
		case 4:
			drop(slot, first, count);
			break;
		case 5:
			protect(slot, first, count);
			break;
		case 6:
			if (!slot->pieces)
				move(slot, &state);
			break;
		case 7:
			replace(slot, first, count);
			break;
		case 8:
			check(madvise((char *)slot->base + first * PAGE, count * PAGE,
				      draw(&state) % 2 ? MADV_WILLNEED : MADV_POPULATE_READ) == 0);
			break;
		}
		if (slot->base)
			verify(slot, "an operation");
		__atomic_fetch_add(&done[operation], 1, __ATOMIC_RELAXED);
		check(pthread_mutex_unlock(&slot->lock) == 0);
	}
	return NULL;
}

/* Takes so much memory for good: what the pool gets then comes from elsewhere in the machine's. */
static void hold(long megabytes)
{
	size_t length = (size_t)megabytes << 20;
	if (!length)
		return;
	char *ballast = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(ballast != MAP_FAILED);
	for (size_t at = 0; at < length; at += PAGE)
		ballast[at] = 1;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"threads", "rounds", "ballast-megabytes", NULL};
	only_options(argc, argv, options);
	long count = number_option(argc, argv, "threads", 1, 6);
	rounds = number_option(argc, argv, "rounds", 1, 1500);
	if (count > 64)
		refuse("--threads %ld: at most 64", count);
	hold(number_option(argc, argv, "ballast-megabytes", 0, 0));
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	check(sigaction(SIGSEGV, &action, NULL) == 0);
	for (int i = 0; i < SLOTS; i++)
		check(pthread_mutex_init(&slots[i].lock, NULL) == 0);
	pthread_t threads[64];
	for (long i = 0; i < count; i++)
		check(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (long i = 0; i < count; i++)
		check(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].base) {
			verify(&slots[i], "the end");
			unmap(&slots[i]);
		}
	long total = 0;
	for (int i = 0; i < 9; i++)
		total += done[i];
	check(total == count * rounds);
	if (refused_moves * 20 > moves + 20)
		fail("mremap refused %ld of %ld moves", refused_moves, moves);
	puts("ok");
	return 0;
}
