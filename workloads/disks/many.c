/* Several threads that read and write the pages of a disk in an order of their own, by calls and through one mapping, while others
 * have them written out; the disk may be larger than memory. Leaves /dev/vda in round 3.
 *
 * Each page belongs to one thread, which knows its round: a store that got lost is found by the next read, and in the end by the host.
 */
#include "disks.h"
#include <pthread.h>
#include <sys/mman.h>

enum { THREADS = 4, ROUNDS = 3 };

static uint64_t size;
static int disk;
static unsigned char *shared;
static volatile int working = THREADS;

static uint64_t next_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t length_of(uint64_t at)
{
	return size - at < PAGE ? (size_t)(size - at) : PAGE;
}

static void check_page(uint64_t at, int round, int by_call)
{
	unsigned char bytes[PAGE];
	if (by_call)
		check(pread(disk, bytes, length_of(at), (off_t)at) == (ssize_t)length_of(at));
	else
		memcpy(bytes, shared + at, length_of(at));
	expect(bytes, length_of(at), at, round, by_call ? "/dev/vda" : "the mapping of /dev/vda");
}

static void write_page(uint64_t at, int round, int by_call)
{
	unsigned char bytes[PAGE];
	fill(bytes, length_of(at), at, round);
	if (by_call)
		check(pwrite(disk, bytes, length_of(at), (off_t)at) == (ssize_t)length_of(at));
	else
		memcpy(shared + at, bytes, length_of(at));
}

/* Goes through its pages in order, then twice from both ends in turn. */
static void *work(void *self)
{
	uint64_t chance = 0x9e3779b97f4a7c15 + (uint64_t)self, pages = (size + PAGE - 1) / PAGE;
	uint64_t own = (pages - (uint64_t)self + THREADS - 1) / THREADS;
	for (int round = 1; round <= ROUNDS; round++)
		for (uint64_t i = 0; i < own; i++) {
			uint64_t index = round == 1 ? i : (i % 2 ? own - 1 - i / 2 : i / 2);
			uint64_t at = ((uint64_t)self + index * THREADS) * PAGE;
			uint64_t choice = next_of(&chance);
			check_page(at, round - 1, choice & 1);
			write_page(at, round, choice & 2);
			if ((choice & 0xff00) == 0)
				check(msync(shared + at, PAGE, MS_SYNC) == 0);
		}
	__atomic_fetch_sub(&working, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *write_out(void *unused)
{
	(void)unused;
	while (working) {
		check(fsync(disk) == 0);
		usleep(20000);
		sync();
	}
	return NULL;
}

void many(void)
{
	pthread_t threads[THREADS + 1];
	disk = open_disk("/dev/vda", O_RDWR, &size);
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, disk, 0);
	check(shared != MAP_FAILED);
	for (long i = 0; i < THREADS; i++)
		check(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	check(pthread_create(&threads[THREADS], NULL, write_out, NULL) == 0);
	for (int i = 0; i <= THREADS; i++)
		check(pthread_join(threads[i], NULL) == 0);
}
