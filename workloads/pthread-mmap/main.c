/* S1's pthread_mmap: threads that map memory, touch every page, check it and unmap it, round after round.
 *
 * The memory is shared out among the threads, and each thread takes its share in 16 pieces, as the original does. With more threads
 * than CPUs some always sleep, and their CPUs' neighbours run others: who is interrupted is who runs at that moment.
 */
#include "../include/workload.h"
#include <pthread.h>
#include <sys/mman.h>

#define PIECES 16
#define MOST_THREADS 256

static long rounds;
static size_t piece;
static pthread_barrier_t barrier;

static void *map_and_unmap(void *argument)
{
	long self = (long)argument;
	volatile long *pieces[PIECES];
	pthread_barrier_wait(&barrier);
	for (long round = 0; round < rounds; round++) {
		for (int i = 0; i < PIECES; i++) {
			pieces[i] = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			check(pieces[i] != MAP_FAILED);
			for (size_t at = 0; at < piece; at += PAGE) {
				volatile long *word = pieces[i] + at / sizeof(long);
				if (*word != 0)
					fail("fresh memory holds %lx", *word);
				*word = self << 40 | round << 8 | i;
			}
		}
		for (int i = 0; i < PIECES; i++) {
			for (size_t at = 0; at < piece; at += PAGE)
				if (pieces[i][at / sizeof(long)] != (self << 40 | round << 8 | i))
					fail("thread %ld: a page holds what another wrote", self);
			check(munmap((void *)pieces[i], piece) == 0);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"threads", "rounds", "megabytes", NULL};
	only_options(argc, argv, options);
	long count = number_option(argc, argv, "threads", 1, 8);
	rounds = number_option(argc, argv, "rounds", 1, 100);
	long megabytes = number_option(argc, argv, "megabytes", 1, 256);
	if (count > MOST_THREADS)
		refuse("--threads %ld: at most %d", count, MOST_THREADS);
	piece = ((size_t)megabytes << 20) / (size_t)count / PIECES / PAGE * PAGE;
	if (piece == 0)
		refuse("--megabytes %ld: less than a page for each of %ld threads' %d pieces", megabytes, count, PIECES);
	check(pthread_barrier_init(&barrier, NULL, (unsigned)count + 1) == 0);
	pthread_t threads[MOST_THREADS];
	for (long i = 0; i < count; i++)
		check(pthread_create(&threads[i], NULL, map_and_unmap, (void *)i) == 0);
	long before = interrupt_row("TLB:");
	uint64_t start = nanoseconds();
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < count; i++)
		check(pthread_join(threads[i], NULL) == 0);
	uint64_t time = nanoseconds() - start;
	long after = interrupt_row("TLB:"), unmaps = rounds * count * PIECES;
	printf("operations=%ld threads=%ld interrupts=%ld ns_per_op=%llu\nok\n", unmaps, count, before < 0 ? -1 : after - before,
	       (unsigned long long)(time / (uint64_t)unmaps));
	return 0;
}
