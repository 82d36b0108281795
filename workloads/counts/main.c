/* How many CPUs does one operation interrupt? Exact counts for each operation and each state of the other threads.
 *
 * Only one operation here frees page tables (munmap-table); there even the CPUs that merely borrow the address space are told, once,
 * for they may be walking the table.
 *
 * Three operations go over 64 areas and two page tables at once (dontneed-areas, munmap-areas, mprotect-areas), and interrupt each CPU
 * once all the same.
 *
 * The measuring thread prepares as many pages as operations are counted, lets every spinning thread read each of them (so that all
 * hold the translations), reads the interrupt row, makes the operations and nothing else, and reads the row again. The others are
 * bound to one CPU each and spin in user mode, are busy in long system calls, sleep on a futex (their CPUs go idle and lazy), or are
 * absent.
 *
 * The row is TLB of /proc/interrupts: remote flushes received, the same on Linux and on Ceasefire. On kernels that count the
 * interrupts themselves elsewhere (CAL), every flush received is still one interrupt taken.
 */
#include "../include/workload.h"
#include "../include/guard.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#define MOST_THREADS 63

#define TABLE (2UL << 20) /* what one page table maps */
#define AREAS 64
#define AREA_SIZE (7 * PAGE)

static char *space;	  /* address space reserved for the pages, a whole number of tables */
static size_t space_size;
static char *region;	  /* the first of the pages that the operations work on */
static size_t stride;	  /* from one to the next: a page, or a whole table */
static int touches;	  /* how many places of each of them are touched, AREA_SIZE apart */
static char *target;	  /* where mremap moves them */
static long operations;
static volatile long sink;

static char *map_at(void *place, size_t length, int protection)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED : 0);
	char *memory = mmap(place, length, protection, flags, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static void *page_at(long index)
{
	return region + (size_t)index * stride;
}

/* Reserves `tables` whole tables of address space. */
static char *reserve(size_t tables)
{
	space_size = (tables + 1) * TABLE;
	space = map_at(NULL, space_size, PROT_NONE);
	return (char *)(((uintptr_t)space + TABLE - 1) & ~(TABLE - 1));
}

/* ---- the operations ---- */

/* Pages side by side within one table, which further pages keep in use to the end: no operation frees a table. */
static void prepare_untouched(void)
{
	char *start = reserve(2);
	stride = PAGE;
	region = map_at(start + PAGE, (size_t)operations * PAGE, PROT_READ | PROT_WRITE);
	target = start + TABLE + PAGE;
	for (int table = 0; table < 2; table++)
		for (int end = 0; end < 2; end++)
			*map_at(start + (size_t)table * TABLE + (end ? TABLE - PAGE : 0), PAGE, PROT_READ | PROT_WRITE) = 1;
}

static void touch_all(void)
{
	for (long i = 0; i < operations; i++)
		*(volatile long *)page_at(i) = i + 1;
}

static void prepare_touched(void)
{
	prepare_untouched();
	touch_all();
}

/* Pages that may be written, shared so that a mere read maps them so, and that nobody has stored to. */
static void prepare_read_once(void)
{
	prepare_untouched();
	int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
	check(mmap(region, (size_t)operations * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == region);
	for (long i = 0; i < operations; i++)
		sink += *(volatile long *)page_at(i);
}

static void prepare_read_only(void)
{
	prepare_touched();
	check(mprotect(region, (size_t)operations * PAGE, PROT_READ) == 0);
}

/* Each page alone in its table, which goes with it: nothing else may be mapped there, the reservation included. */
static void prepare_tables(void)
{
	char *start = reserve((size_t)operations);
	check(munmap(space, space_size) == 0);
	stride = TABLE;
	region = start + TABLE / 2;
	for (long i = 0; i < operations; i++)
		map_at(page_at(i), PAGE, PROT_READ | PROT_WRITE);
	touch_all();
}

/* For each operation as many areas side by side as AREAS, over two tables: of seven pages each, no two neighbours of which are alike, and
 * one page of each is touched. The rest of each table stays reserved, so that no operation frees one.
 */
static void prepare_areas(void)
{
	char *start = reserve((size_t)operations + 1);
	stride = TABLE;
	region = start + TABLE / 2;
	touches = AREAS;
	for (long i = 0; i < operations; i++) {
		map_at(page_at(i), AREAS * AREA_SIZE, PROT_READ | PROT_WRITE);
		for (int area = 0; area < AREAS; area++) {
			char *place = (char *)page_at(i) + (size_t)area * AREA_SIZE;
			if (area % 2)
				check(madvise(place, AREA_SIZE, MADV_DONTDUMP) == 0);
			*place = 1;
		}
	}
}

static void dontneed(long i) { check(madvise(page_at(i), PAGE, MADV_DONTNEED) == 0); }
static void unmap(long i) { check(munmap(page_at(i), PAGE) == 0); }
static void protect(long i) { check(mprotect(page_at(i), PAGE, PROT_READ) == 0); }
static void promote(long i) { check(mprotect(page_at(i), PAGE, PROT_READ | PROT_WRITE) == 0); }
static void move(long i)
{
	char *place = target + (size_t)i * PAGE;
	check(mremap(page_at(i), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
}

static void dontneed_areas(long i) { check(madvise(page_at(i), AREAS * AREA_SIZE, MADV_DONTNEED) == 0); }
static void unmap_areas(long i) { check(munmap(page_at(i), AREAS * AREA_SIZE) == 0); }
static void protect_areas(long i) { check(mprotect(page_at(i), AREAS * AREA_SIZE, PROT_READ) == 0); }

/* Pages that a userfaultfd may guard; and such that it guards. */
static void prepare_watched(void)
{
	prepare_touched();
	watch_stores(region, (size_t)operations * PAGE);
}

static void prepare_guarded(void)
{
	prepare_watched();
	set_guard(region, (size_t)operations * PAGE, 1);
}

static void guard(long i) { set_guard(page_at(i), PAGE, 1); }
static void unguard(long i) { set_guard(page_at(i), PAGE, 0); }

static const struct operation {
	const char *name;
	void (*prepare)(void);
	void (*run)(long index);
	int touched; /* may the others read the pages beforehand? */
} all_operations[] = {
	{"dontneed", prepare_touched, dontneed, 1},
	{"munmap", prepare_touched, unmap, 1},
	{"munmap-table", prepare_tables, unmap, 1},
	{"mremap", prepare_touched, move, 1},
	{"mprotect-down", prepare_touched, protect, 1},
	{"mprotect-clean", prepare_read_once, protect, 1},
	{"mprotect-promote", prepare_read_only, promote, 1},
	{"dontneed-areas", prepare_areas, dontneed_areas, 1},
	{"munmap-areas", prepare_areas, unmap_areas, 1},
	{"mprotect-areas", prepare_areas, protect_areas, 1},
	{"guard", prepare_watched, guard, 1},
	{"unguard", prepare_guarded, unguard, 1},
	{"untouched-munmap", prepare_untouched, unmap, 0},
	{"untouched-dontneed", prepare_untouched, dontneed, 0},
	{"untouched-mprotect", prepare_untouched, protect, 0},
};
#define OPERATIONS (sizeof all_operations / sizeof *all_operations)

/* ---- the other threads ---- */

enum state { ABSENT, SPINNING, CALLING, SLEEPING };
static const char *const state_names[] = {"absent", "spinning", "calling", "sleeping"};

static enum state state;
static int threads, cpus[MOST_THREADS + 1], touched_flag, zeroes, nowhere;
static uint32_t round_word; /* raised to have the pages read once more; the sleepers' futex too */
static uint32_t reads_done[MOST_THREADS][16], over;

/* A call that takes some milliseconds, does not sleep, and uses no memory of the program's: from one file to another. */
#define FILE_SIZE (64UL << 20)

static void stay_in_a_call(void)
{
	off_t offset = 0;
	check(sendfile(nowhere, zeroes, &offset, FILE_SIZE) == (ssize_t)FILE_SIZE);
}

static void read_pages(void)
{
	long sum = 0;
	for (long i = 0; i < operations; i++)
		for (int place = 0; place < touches; place++)
			sum += *(volatile long *)((char *)page_at(i) + (size_t)place * AREA_SIZE);
	sink = sum;
}

static void *be_another_thread(void *argument)
{
	int self = (int)(long)argument;
	uint32_t seen = 0;
	bind_to(cpus[self + 1]);
	__atomic_store_n(&reads_done[self][0], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		uint32_t now = __atomic_load_n(&round_word, __ATOMIC_ACQUIRE);
		if (now != seen) {
			seen = now;
			if (touched_flag)
				read_pages();
			__atomic_store_n(&reads_done[self][0], now + 1, __ATOMIC_RELEASE);
		} else if (state == SLEEPING) {
			syscall(SYS_futex, &round_word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		} else if (state == CALLING) {
			stay_in_a_call();
		} else {
			relax();
		}
	}
	return NULL;
}

/* Has every other thread read the pages, and gone back to its call or to sleep. */
static void let_others_read(void)
{
	uint32_t now = __atomic_add_fetch(&round_word, 1, __ATOMIC_RELEASE);
	if (state == SLEEPING)
		syscall(SYS_futex, &round_word, FUTEX_WAKE_PRIVATE, MOST_THREADS, NULL, NULL, 0);
	for (int i = 0; i < threads; i++)
		while (__atomic_load_n(&reads_done[i][0], __ATOMIC_ACQUIRE) != now + 1)
			relax();
	if (state == SLEEPING)
		usleep(20000);
	if (state == CALLING)
		usleep(1000);
}

/* An emulator that runs one CPU at a time goes on to the next one here. Else it may stay for many operations while another CPU's turn had
 * ended in the kernel, at a timer's interrupt, where nobody interrupts it. The others spin as briefly; a call would be waited for.
 */
static void let_others_go_on(void)
{
	if (state == SPINNING)
		relax();
}

static void measure(const struct operation *operation)
{
	touched_flag = operation->touched;
	touches = 1;
	operation->prepare();
	let_others_read();
	long before = interrupt_row("TLB:");
	uint64_t time = 0;
	for (long i = 0; i < operations; i++) {
		uint64_t start = nanoseconds();
		operation->run(i);
		time += nanoseconds() - start;
		let_others_go_on();
	}
	long after = interrupt_row("TLB:");
	printf("op=%s state=%s threads=%d interrupts=%ld operations=%ld\n", operation->name, state_names[state], threads,
	       before < 0 ? -1 : after - before, operations);
	fprintf(stderr, "op=%s state=%s threads=%d ns_per_op=%llu\n", operation->name, state_names[state], threads,
		(unsigned long long)(time / (uint64_t)operations));
	check(munmap(space, space_size) == 0);
}

static void measure_wanted(const char *wanted)
{
	pthread_t others[MOST_THREADS];
	for (long i = 0; i < threads; i++)
		check(pthread_create(&others[i], NULL, be_another_thread, (void *)i) == 0);
	for (int i = 0; i < threads; i++)
		while (!__atomic_load_n(&reads_done[i][0], __ATOMIC_ACQUIRE))
			usleep(100);
	int known = 0;
	for (size_t i = 0; i < OPERATIONS; i++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, all_operations[i].name) == 0) {
			known = 1;
			measure(&all_operations[i]);
		}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&round_word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &round_word, FUTEX_WAKE_PRIVATE, MOST_THREADS, NULL, NULL, 0);
	for (int i = 0; i < threads; i++)
		check(pthread_join(others[i], NULL) == 0);
	if (!known) {
		fputs("--op NAME: one of all", stderr);
		for (size_t i = 0; i < OPERATIONS; i++)
			fprintf(stderr, " %s", all_operations[i].name);
		fputs("\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"op", "state", "threads", "operations", NULL};
	only_options(argc, argv, options);
	int available = allowed_cpus(cpus, MOST_THREADS + 1);
	const char *wanted = word_option(argc, argv, "state", "spinning");
	for (state = 0; strcmp(state_names[state], wanted) != 0;)
		if (++state > SLEEPING)
			refuse("--state %s: one of absent, spinning, calling, sleeping", wanted);
	threads = (int)number_option(argc, argv, "threads", 0, state == ABSENT ? 0 : available - 1);
	if (threads > available - 1 || (state == ABSENT && threads))
		refuse("--threads %d: there are %d CPUs, and state %s", threads, available, state_names[state]);
	operations = number_option(argc, argv, "operations", 1, 100);
	if (operations > 500)
		refuse("--operations %ld: at most 500, as many pages as lie in one table", operations);
	check((zeroes = memfd_create("zeroes", 0)) >= 0 && ftruncate(zeroes, FILE_SIZE) == 0);
	check((nowhere = open("/dev/null", O_WRONLY)) >= 0);
	bind_to(cpus[0]);
	measure_wanted(word_option(argc, argv, "op", "all"));
	return 0;
}
