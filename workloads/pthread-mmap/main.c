/* S1's pthread_mmap: more threads than CPUs that map memory, touch it and unmap it, round after round.
 *
 * The memory is shared out among the threads, and each takes its share in 16 pieces: it maps all of them, touches them, and unmaps
 * them. What touching means is not said in the source. Its time (1.1 s for 12,800 pieces of 100 rounds) is that of one page a piece,
 * which is the case `first`: there the cost is the unmapping, and the full size is no effort. The case `every` touches all pages, with
 * an eighth of the memory and a twentieth of the rounds. Contents are checked in both.
 *
 * Bound: a piece is used by its own thread only. While that thread stays on its CPU no other can hold the piece's translations, and
 * nobody need be interrupted: none. (A thread that moved to another CPU in between leaves some behind; the bound says nothing of it.)
 */
#include "../include/measure.h"
#include <pthread.h>
#include <sys/mman.h>

#define PIECES 16
#define MOST_THREADS 256

static long threads, rounds;
static size_t piece, touched; /* bytes of a piece, and how far into it pages are touched */
static pthread_barrier_t barrier;

static volatile long *map_piece(long mark)
{
	char *memory = mmap(NULL, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	for (size_t at = 0; at < touched; at += PAGE) {
		volatile long *words = (volatile long *)(memory + at);
		words[0] = mark;
		if (words[1] != 0)
			fail("fresh memory holds %lx", words[1]);
		words[1] = mark;
	}
	return (volatile long *)memory;
}

static void unmap_piece(volatile long *memory, long mark)
{
	for (size_t at = 0; at < touched; at += PAGE)
		if (memory[at / sizeof(long)] != mark)
			fail("a page holds %lx, what another wrote, instead of %lx", memory[at / sizeof(long)], mark);
	check(munmap((void *)memory, piece) == 0);
}

static void *map_and_unmap(void *argument)
{
	long self = (long)argument + 1;
	volatile long *pieces[PIECES];
	pthread_barrier_wait(&barrier);
	for (long round = 0; round < rounds; round++) {
		for (int i = 0; i < PIECES; i++)
			pieces[i] = map_piece(self << 40 | round << 8 | i);
		for (int i = 0; i < PIECES; i++)
			unmap_piece(pieces[i], self << 40 | round << 8 | i);
	}
	return NULL;
}

static void measure(const char *name, long with_rounds, long megabytes, int every)
{
	pthread_t started[MOST_THREADS];
	rounds = with_rounds;
	piece = ((size_t)megabytes << 20) / (size_t)threads / PIECES / PAGE * PAGE;
	touched = every ? piece : PAGE;
	if (piece == 0)
		refuse("--megabytes %ld: less than a page for each of %ld threads' %d pieces", megabytes, threads, PIECES);
	check(pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1) == 0);
	for (long i = 0; i < threads; i++)
		check(pthread_create(&started[i], NULL, map_and_unmap, (void *)i) == 0);
	struct measurement unmaps = begin("TLB:");
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < threads; i++)
		check(pthread_join(started[i], NULL) == 0);
	end(&unmaps);
	check(pthread_barrier_destroy(&barrier) == 0);
	print_measurement(&unmaps, name, threads, rounds * threads * PIECES, 0, "");
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"threads", "rounds", "megabytes", NULL};
	only_options(argc, argv, options);
	threads = number_option(argc, argv, "threads", 1, 8);
	long wanted = number_option(argc, argv, "rounds", 1, 100), megabytes = number_option(argc, argv, "megabytes", 1, 256);
	if (threads > MOST_THREADS)
		refuse("--threads %ld: at most %d", threads, MOST_THREADS);
	if (megabytes > 1L << 20)
		refuse("--megabytes %ld: at most a terabyte", megabytes);
	measure("first", wanted, megabytes, 0);
	measure("every", (wanted + 19) / 20, (megabytes + 7) / 8, 1);
	puts("ok");
	return 0;
}
