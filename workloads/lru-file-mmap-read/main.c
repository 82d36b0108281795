/* One reader on each CPU, which reads through a mapping a part of its own of a disk that is ten times the memory (S0).
 *
 * So almost every page that comes in pushes one out that some reader still has mapped. Before a page can be given to somebody else no
 * CPU may hold a translation to it, and how many interrupts that takes is the question: one for each page and CPU, or one for many.
 *
 * The disk is /dev/vda. Readers are processes, as in the source, or threads of one process, whose translations every CPU may
 * hold. An operation is one page read; each is checked: its first and its last word are its number on the disk. How many pages were
 * taken back comes from /proc/vmstat.
 */
#include "../include/workload.h"
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST_READERS 64
#define DISK "/dev/vda"
#define WORDS (PAGE / sizeof(long))

struct shared {
	volatile int ready, go;
	uint64_t took[MOST_READERS];
	long pages[MOST_READERS];
};

static struct shared *shared;
static int cpus[MOST_READERS], readers;
static long passes;

static void read_part(int self)
{
	bind_to(cpus[self]);
	int disk = open(DISK, O_RDONLY);
	check(disk >= 0);
	long pages = lseek(disk, 0, SEEK_END) / PAGE / readers;
	long first = self * pages;
	volatile long *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ, MAP_SHARED, disk, first * PAGE);
	check(memory != MAP_FAILED);
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		relax();
	uint64_t start = nanoseconds();
	for (long pass = 0; pass < passes; pass++)
		for (long page = 0; page < pages; page++)
			/* First and last word: the translation, and what it leads to. */
			if (memory[page * WORDS] != first + page || memory[page * WORDS + WORDS - 1] != first + page)
				fail("page %ld of the disk is not what was written", first + page);
	shared->took[self] = nanoseconds() - start;
	shared->pages[self] = passes * pages;
}

static void *read_as_thread(void *self)
{
	read_part((int)(long)self);
	return NULL;
}

/* The sum of two rows of /proc/vmstat, of what the kernel did in the background and for those who waited; -1 where nobody counts. */
static long both(const char *background, const char *direct)
{
	static char text[1 << 15];
	int file = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
	close(file);
	text[length > 0 ? length : 0] = 0;
	long all = -1;
	const char *const rows[] = {background, direct};
	for (int i = 0; i < 2; i++) {
		const char *row = strstr(text, rows[i]);
		if (row)
			all = (all < 0 ? 0 : all) + strtol(row + strlen(rows[i]), NULL, 10);
	}
	return all;
}

/* Pages that were taken back from their users so far, and that were looked at for that. */
static long stolen(void)
{
	return both("\npgsteal_kswapd ", "\npgsteal_direct ");
}

static long looked_at(void)
{
	return both("\npgscan_kswapd ", "\npgscan_direct ");
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static void print_figures(uint64_t elapsed, long interrupts, long taken, long looked, int threads)
{
	double sum = 0, squares = 0;
	uint64_t least = shared->took[0], most = 0;
	long pages = 0;
	for (int i = 0; i < readers; i++) {
		uint64_t took = shared->took[i];
		sum += (double)took;
		squares += (double)took * (double)took;
		least = took < least ? took : least;
		most = took > most ? took : most;
		pages += shared->pages[i];
	}
	double variance = squares / readers - sum / readers * (sum / readers);
	struct rusage own, children;
	check(getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0);
	printf("case=%s threads=%d operations=%ld interrupts=%ld ns_per_op=%llu elapsed_ms=%.0f spread_ms=%.0f deviation_ms=%.1f system_ms=%.0f",
	       threads ? "threads" : "processes", readers, pages, interrupts, (unsigned long long)(elapsed / (uint64_t)pages),
	       (double)elapsed / 1e6, (double)(most - least) / 1e6, sqrt(variance > 0 ? variance : 0) / 1e6,
	       1e3 * (seconds(own.ru_stime) + seconds(children.ru_stime)));
	if (taken > 0)
		printf(" stolen_pages=%ld looked_at_per_stolen=%.2f", taken, (double)looked / (double)taken);
	if (taken > 0 && interrupts >= 0)
		printf(" interrupts_per_1000_stolen=%.2f", 1000.0 * (double)interrupts / (double)taken);
	putchar('\n');
}

static void run(int threads)
{
	pthread_t others[MOST_READERS];
	pid_t processes[MOST_READERS];
	memset(shared, 0, sizeof *shared);
	for (int i = 0; i < readers; i++)
		if (threads) {
			check(pthread_create(&others[i], NULL, read_as_thread, (void *)(long)i) == 0);
		} else if ((processes[i] = fork()) == 0) {
			read_part(i);
			_exit(0);
		}
	while (shared->ready < readers)
		usleep(1000);
	long before = interrupt_row("TLB:"), taken = stolen(), looked = looked_at();
	uint64_t start = nanoseconds();
	shared->go = 1;
	for (int i = 0; i < readers; i++) {
		int status = 0;
		check(threads ? pthread_join(others[i], NULL) == 0 : waitpid(processes[i], &status, 0) == processes[i]);
		if (status != 0)
			fail("reader %d ended with status %#x", i, (unsigned)status);
	}
	uint64_t elapsed = nanoseconds() - start;
	long after = interrupt_row("TLB:");
	print_figures(elapsed, before < 0 || after < 0 ? -1 : after - before, stolen() - taken, looked_at() - looked, threads);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"passes", "readers", NULL};
	only_options(argc, argv, options);
	passes = number_option(argc, argv, "passes", 1, 1);
	const char *kind = word_option(argc, argv, "readers", "processes");
	int threads = strcmp(kind, "threads") == 0;
	if (!threads && strcmp(kind, "processes") != 0)
		refuse("--readers %s: threads or processes", kind);
	if (access(DISK, R_OK) != 0) {
		puts("absent there is no disk to read");
		return 77;
	}
	readers = allowed_cpus(cpus, MOST_READERS);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	run(threads);
	puts("ok");
	return 0;
}
