/* S4's load: threads that move mappings with mremap, back and forth, and check their contents.
 *
 * Each thread owns a source and a target place. The pages are anonymous, shared, or of a file; all are dirty, so that nothing may be
 * written out or reused through a stale entry while a move is under way.
 */
#include "../include/workload.h"
#include <pthread.h>
#include <sys/mman.h>

#define MOST_THREADS 64

static long iterations, pages;
static enum kind { ANONYMOUS, SHARED, FILE_PAGES } kind;
static const char *const kind_names[] = {"anonymous", "shared", "file"};
static int cpus[MOST_THREADS], cpu_count;
static pthread_barrier_t barrier;

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

static void *move(void *argument)
{
	long self = (long)argument;
	size_t length = (size_t)pages * PAGE;
	bind_to(cpus[self % cpu_count]);
	char *here = map_source(self), *there = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(here != MAP_FAILED && there != MAP_FAILED);
	for (long page = 0; page < pages; page++)
		*(volatile long *)(here + page * (long)PAGE) = self;
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < iterations; i++) {
		for (long page = 0; page < pages; page++)
			*(volatile long *)(here + page * (long)PAGE) += 1;
		check(mremap(here, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
		for (long page = 0; page < pages; page++) {
			long value = *(volatile long *)(there + page * (long)PAGE);
			if (value != self + i + 1)
				fail("thread %ld, move %ld: page %ld holds %ld", self, i, page, value);
		}
		char *old = here;
		here = there;
		there = old;
	}
	check(munmap(here, length) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"iterations", "threads", "pages", "kind", NULL};
	only_options(argc, argv, options);
	iterations = number_option(argc, argv, "iterations", 1, 2000);
	pages = number_option(argc, argv, "pages", 1, 16);
	cpu_count = allowed_cpus(cpus, MOST_THREADS);
	long threads = number_option(argc, argv, "threads", 1, cpu_count);
	if (threads > MOST_THREADS)
		refuse("--threads %ld: at most %d", threads, MOST_THREADS);
	const char *wanted = word_option(argc, argv, "kind", "anonymous");
	for (kind = ANONYMOUS; strcmp(kind_names[kind], wanted) != 0;)
		if (++kind > FILE_PAGES)
			refuse("--kind %s: one of anonymous, shared, file", wanted);
	check(pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1) == 0);
	pthread_t others[MOST_THREADS];
	for (long i = 0; i < threads; i++)
		check(pthread_create(&others[i], NULL, move, (void *)i) == 0);
	long before = interrupt_row("TLB:");
	uint64_t start = nanoseconds();
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < threads; i++)
		check(pthread_join(others[i], NULL) == 0);
	uint64_t time = nanoseconds() - start;
	long after = interrupt_row("TLB:"), moves = iterations * threads;
	printf("operations=%ld threads=%ld pages=%ld kind=%s interrupts=%ld ns_per_op=%llu\nok\n", moves, threads, pages,
	       kind_names[kind], before < 0 ? -1 : after - before, (unsigned long long)(time / (uint64_t)moves));
	return 0;
}
