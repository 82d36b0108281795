/* The store buffer litmus test: two threads each store, then load what the other stores. Not both may miss the other's store.
 *
 * The fast thread has nothing but a compiler barrier between its two accesses, and a CPU lets its load pass its store. The slow one
 * makes up for it: with --barrier membarrier (private, global or delayed) there must be no violation. With --barrier fence it
 * has only a fence of its own, which does not help: violations are then what is expected, wherever CPUs really run at once.
 *
 * The fast thread is a loop over all rounds; the slow one starts each, with varying delays so that the accesses meet. --system-calls
 * makes the fast thread enter and leave the kernel in each round, --migrate lets it move to another CPU now and then.
 */
#include "../include/workload.h"
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>

#define LINE 64

/* Every variable on a line of its own, so that a store has to wait for its line. */
static struct {
	volatile long value __attribute__((aligned(LINE)));
} x, y, go, done, seen;

static long iterations, system_calls, migrate;
static int cpus[64], cpu_count;

static inline void compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

static void wait_a_little(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}

static void *be_fast(void *unused)
{
	bind_to(cpus[1 % cpu_count]);
	for (long round = 1; round <= iterations; round++) {
		while (go.value != round)
			relax();
		if (migrate && round % 64 == 0)
			bind_to(cpus[1 + round / 64 % (cpu_count - 1)]);
		wait_a_little((unsigned)(round * 7 % 31));
		if (system_calls && round % 2)
			syscall(SYS_getppid);
		x.value = round;
		compiler_barrier();
		long other = y.value;
		compiler_barrier();
		if (system_calls && round % 3)
			syscall(SYS_getppid);
		seen.value = other;
		__atomic_store_n(&done.value, round, __ATOMIC_RELEASE);
	}
	return unused;
}

static void pass(int command)
{
	if (command < 0)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else if (syscall(SYS_membarrier, command, 0, 0) != 0)
		fail("membarrier(%d): %s", command, strerror(errno));
}

static int command_of(const char *name)
{
	if (strcmp(name, "fence") == 0)
		return -1;
	if (strcmp(name, "delayed") == 0)
		return MEMBARRIER_CMD_GLOBAL;
	if (strcmp(name, "global") == 0) {
		check(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0);
		return MEMBARRIER_CMD_GLOBAL_EXPEDITED;
	}
	if (strcmp(name, "private") != 0)
		refuse("--barrier %s: private, global, delayed or fence is needed", name);
	check(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
	return MEMBARRIER_CMD_PRIVATE_EXPEDITED;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"iterations", "barrier", "system-calls", "migrate", NULL};
	only_options(argc, argv, names);
	iterations = number_option(argc, argv, "iterations", 1, 100000);
	system_calls = number_option(argc, argv, "system-calls", 0, 0);
	migrate = number_option(argc, argv, "migrate", 0, 0);
	cpu_count = allowed_cpus(cpus, 64);
	if (cpu_count < 2)
		refuse("two CPUs are needed");
	int command = command_of(word_option(argc, argv, "barrier", "private"));

	pthread_t thread;
	long violations = 0;
	bind_to(cpus[0]);
	check(pthread_create(&thread, NULL, be_fast, NULL) == 0);
	for (long round = 1; round <= iterations; round++) {
		go.value = round;
		wait_a_little((unsigned)(round * 13 % 97));
		y.value = round;
		compiler_barrier();
		pass(command);
		long other = x.value;
		while (__atomic_load_n(&done.value, __ATOMIC_ACQUIRE) != round)
			relax();
		violations += other != round && seen.value != round;
	}
	check(pthread_join(thread, NULL) == 0);
	printf("violations=%ld iterations=%ld\n", violations, iterations);
	puts("ok");
	return 0;
}
