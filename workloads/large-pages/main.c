/* Pages of 2 MiB for private anonymous memory: who gets one, and what each memory call makes of it.
 *
 * All that is asserted holds on Linux 6.1 too. How much is mapped by large pages is read from /proc/self/smaps; contents are checked
 * before and after each call, page by page. A second thread looks on where there is a second CPU, so that its CPU holds translations of
 * every large page that is changed. */
#include "../include/workload.h"
#include "../include/large-pages.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#define COLLAPSE 25
#define PAGES (LARGE / PAGE)
#define POLICY "/sys/kernel/mm/transparent_hugepage/enabled"

static char *area; /* three large pages' worth */
static volatile int is_over;
static volatile long seen;

static void set_policy(const char *word)
{
	int file = open(POLICY, O_WRONLY);
	check(file >= 0 && write(file, word, strlen(word)) == (ssize_t)strlen(word) && close(file) == 0);
}

static int policy_is(const char *word)
{
	char text[64] = "";
	int file = open(POLICY, O_RDONLY);
	check(file >= 0 && read(file, text, sizeof text - 1) > 0 && close(file) == 0);
	return strstr(text, word) != NULL;
}

static long kilobytes(void)
{
	return large_kilobytes(area, area + 3 * LARGE) / (long)(LARGE / 1024);
}

static void fill(char *start, long from, long to)
{
	for (long page = from; page < to; page++)
		*(volatile long *)(start + page * PAGE) = page + 1;
}

static int holds(char *start, long from, long to)
{
	for (long page = from; page < to; page++)
		if (*(volatile long *)(start + page * PAGE) != page + 1)
			return 0;
	return 1;
}

/* Three large pages, full. */
static void make(void)
{
	check(mmap(area, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	check(madvise(area, 3 * LARGE, MADV_HUGEPAGE) == 0);
	fill(area, 0, 3 * PAGES);
	check(kilobytes() == 3);
}

static void *look_on(void *argument)
{
	volatile long *always = argument;
	while (!is_over)
		seen += *always;
	return NULL;
}

static void check_policies(void)
{
	set_policy("always");
	check(policy_is("[always]"));
	check(mmap(area, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	area[LARGE] = 1;
	check(kilobytes() == 1);
	check(madvise(area, LARGE, MADV_NOHUGEPAGE) == 0);
	area[0] = 1;
	check(kilobytes() == 1);
	set_policy("never\n");
	check(policy_is("[never]"));
	check(madvise(area + 2 * LARGE, LARGE, MADV_HUGEPAGE) == 0);
	area[2 * LARGE] = 1;
	check(kilobytes() == 1);
	int file = open(POLICY, O_WRONLY);
	check(file >= 0 && write(file, "sometimes", 9) == -1 && errno == EINVAL && close(file) == 0);
	set_policy("madvise");
	check(policy_is("[madvise]"));
	check(mmap(area, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	area[0] = 1;
	check(kilobytes() == 0);
}

static void check_parts(void)
{
	make();
	check(munmap(area + LARGE + 10 * PAGE, 5 * PAGE) == 0);
	check(kilobytes() == 2 && holds(area, 0, PAGES + 10) && holds(area, PAGES + 15, 3 * PAGES));
	make();
	check(mprotect(area + 10 * PAGE, LARGE, PROT_READ) == 0);
	check(kilobytes() == 1 && holds(area, 0, 3 * PAGES));
	make();
	check(madvise(area + 2 * LARGE - 2 * PAGE, 4 * PAGE, MADV_DONTNEED) == 0);
	check(kilobytes() == 1 && holds(area, 0, 2 * PAGES - 2) && holds(area, 2 * PAGES + 2, 3 * PAGES));
	check(area[2 * LARGE] == 0);
	make();
	check(madvise(area + PAGE, PAGE, MADV_DONTFORK) == 0);
	check(kilobytes() == 2 && holds(area, 0, 3 * PAGES));
}

static void check_wholes(void)
{
	make();
	check(mprotect(area, 2 * LARGE, PROT_READ) == 0 && mprotect(area, 2 * LARGE, PROT_READ | PROT_WRITE) == 0);
	check(kilobytes() == 3 && holds(area, 0, 3 * PAGES));
	check(madvise(area + LARGE, LARGE, MADV_DONTNEED) == 0);
	/* A load may bring a large page in, as on Linux without a large page of zeroes, or a small one. */
	check(kilobytes() == 2 && area[LARGE + 7 * PAGE] == 0);
	check(munmap(area, 2 * LARGE) == 0);
	check(kilobytes() == 1 && holds(area, 2 * PAGES, 3 * PAGES));
	unsigned char resident[PAGES];
	check(mincore(area + 2 * LARGE, LARGE, resident) == 0);
	for (unsigned long page = 0; page < PAGES; page++)
		check(resident[page] & 1);
}

static void check_moves(void)
{
	char *other = map_aligned(4 * LARGE, PROT_READ | PROT_WRITE);
	make();
	check(mremap(area, 2 * LARGE, 2 * LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	check(large_kilobytes(other, other + 2 * LARGE) == 2 * (long)LARGE / 1024 && holds(other, 0, 2 * PAGES));
	check(mremap(other, 2 * LARGE, 2 * LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, area + PAGE) == area + PAGE);
	check(kilobytes() == 0 && holds(area + PAGE, 0, 2 * PAGES));
	check(munmap(other, 4 * LARGE) == 0);
}

static void check_fork(void)
{
	int status;
	make();
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		if (!holds(area, 0, 3 * PAGES) || kilobytes() != 3)
			_exit(1);
		*(volatile long *)(area + 5 * PAGE) = -1;
		_exit(kilobytes() == 2 && holds(area, 0, 5) && holds(area, 6, 3 * PAGES) ? 0 : 2);
	}
	check(waitpid(child, &status, 0) == child && WIFEXITED(status));
	check(WEXITSTATUS(status) == 0);
	check(holds(area, 0, 3 * PAGES));
	fill(area, 0, 3 * PAGES);
	check(kilobytes() == 3);
}

static void check_collapse(void)
{
	check(mmap(area, 3 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	check(madvise(area, 3 * LARGE, COLLAPSE) == -1 && errno == EINVAL);
	fill(area, 0, PAGES + 100);
	check(kilobytes() == 0);
	check(madvise(area, 2 * LARGE, COLLAPSE) == 0);
	check(kilobytes() == 2 && holds(area, 0, PAGES + 100) && area[LARGE + 100 * PAGE] == 0);
	check(madvise(area, 2 * LARGE, COLLAPSE) == 0);
	check(madvise(area, PAGE, COLLAPSE) == 0);
	fill(area + 2 * LARGE, 0, 3);
	check(mprotect(area + 2 * LARGE, LARGE, PROT_READ) == 0);
	check(madvise(area + 2 * LARGE, LARGE, COLLAPSE) == -1 && errno == EINVAL);
	check(mprotect(area + 2 * LARGE, LARGE, PROT_READ | PROT_WRITE) == 0);
	check(madvise(area + 2 * LARGE, LARGE, MADV_NOHUGEPAGE) == 0);
	check(madvise(area + 2 * LARGE, LARGE, COLLAPSE) == -1 && errno == EINVAL);
	check(munmap(area + LARGE, LARGE) == 0);
	check(madvise(area, 2 * LARGE, COLLAPSE) == -1 && errno == ENOMEM);
}

int main(int argc, char **argv)
{
	int cpus[2];
	static const char *const options[] = {NULL};
	only_options(argc, argv, options);
	area = map_aligned(3 * LARGE, PROT_READ | PROT_WRITE);
	long *always = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(always != MAP_FAILED);
	pthread_t thread;
	int looks_on = allowed_cpus(cpus, 2) > 1;
	if (looks_on)
		check(pthread_create(&thread, NULL, look_on, always) == 0);
	check_policies();
	check_parts();
	check_wholes();
	check_moves();
	check_fork();
	check_collapse();
	is_over = 1;
	if (looks_on)
		check(pthread_join(thread, NULL) == 0);
	puts("ok");
	return 0;
}
