/* What the kernel's elementary services cost: an empty system call, a page fault, a context switch, fork and exit.
 *
 * Each figure is the median of many batches (or single events where they are long), in ticks of the time stamp counter and in
 * nanoseconds of the monotonic clock. Everything runs on one CPU, so that no other CPU's work is in it, and so that a switch is a
 * switch and not a wake-up of an idle CPU.
 */
#include "../include/workload.h"
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MOST 4000

static uint64_t samples[MOST];
static double ticks_per_nanosecond;

static void say(const char *name, size_t count, double divisor)
{
	double value = (double)median(samples, count) / divisor;
	printf("cost=%s ticks=%.0f ns=%.0f samples=%zu\n", name, value, value / ticks_per_nanosecond, count);
}

static void calibrate(void)
{
	uint64_t clock = nanoseconds(), counter = ticks();
	while (nanoseconds() - clock < 20000000)
		relax();
	ticks_per_nanosecond = (double)(ticks() - counter) / (double)(nanoseconds() - clock);
}

static void empty_calls(void)
{
	enum { BATCH = 100 };
	for (int i = 0; i < 400; i++) {
		uint64_t start = ticks();
		for (int call = 0; call < BATCH; call++)
			syscall(SYS_getppid);
		samples[i] = ticks() - start;
	}
	say("empty-call", 400, BATCH);
}

/* First touches of anonymous pages, each fault apart; the table is there already for most of them. */
static void faults(void)
{
	enum { PAGES = 1000 };
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	for (int i = 0; i < PAGES; i++) {
		uint64_t start = ticks();
		((volatile char *)memory)[(size_t)i * PAGE] = 1;
		samples[i] = ticks() - start;
	}
	say("fault-anonymous", PAGES, 1);
	pid_t pid = fork();
	check(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	for (int i = 0; i < PAGES; i++) {
		uint64_t start = ticks();
		((volatile char *)memory)[(size_t)i * PAGE] = 2;
		samples[i] = ticks() - start;
	}
	say("fault-copy", PAGES, 1);
	check(kill(pid, 9) == 0 && waitpid(pid, NULL, 0) == pid);
	check(munmap(memory, PAGES * PAGE) == 0);
}

/* mmap, touch, munmap of one page: the shortest life of a mapping. */
static void mappings(void)
{
	for (int i = 0; i < 500; i++) {
		uint64_t start = ticks();
		char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*(volatile char *)memory = 1;
		munmap(memory, PAGE);
		samples[i] = ticks() - start;
	}
	say("map-touch-unmap", 500, 1);
}

/* Two processes hand a byte back and forth over two pipes: two switches, two writes and two reads a round. */
static void switch_of_processes(void)
{
	int there[2], back[2];
	char byte = 'x';
	check(pipe(there) == 0 && pipe(back) == 0);
	pid_t pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 1000; i++) {
		uint64_t start = ticks();
		check(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
		samples[i] = ticks() - start;
	}
	say("switch-processes-pipe", 1000, 2);
	close(there[1]);
	check(waitpid(pid, NULL, 0) == pid);
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

/* Two threads hand a word back and forth over a futex. */
static uint32_t turn;

static void wait_turn(uint32_t mine)
{
	uint32_t now;
	while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != mine)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void give_turn(uint32_t next)
{
	__atomic_store_n(&turn, next, __ATOMIC_RELEASE);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *partner(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		wait_turn(1);
		give_turn(0);
	}
	return unused;
}

static void switch_of_threads(void)
{
	pthread_t thread;
	check(pthread_create(&thread, NULL, partner, NULL) == 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t start = ticks();
		give_turn(1);
		wait_turn(0);
		samples[i] = ticks() - start;
	}
	check(pthread_join(thread, NULL) == 0);
	say("switch-threads-futex", 1000, 2);
}

static void yields(void)
{
	enum { BATCH = 100 };
	for (int i = 0; i < 100; i++) {
		uint64_t start = ticks();
		for (int call = 0; call < BATCH; call++)
			sched_yield();
		samples[i] = ticks() - start;
	}
	say("yield-alone", 100, BATCH);
}

static void forks(void)
{
	for (int i = 0; i < 100; i++) {
		uint64_t start = ticks();
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		check(waitpid(pid, NULL, 0) == pid);
		samples[i] = ticks() - start;
	}
	say("fork-exit-wait", 100, 1);
}

static void *nothing(void *unused) { return unused; }

static void thread_lives(void)
{
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		uint64_t start = ticks();
		check(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
		samples[i] = ticks() - start;
	}
	say("thread-create-join", 200, 1);
}

int main(void)
{
	/* The emulator starts the counter at zero: in the first program after boot this is the time from power-on to here. */
	printf("ticks_since_power_on=%llu\n", (unsigned long long)ticks());
	int cpus[1];
	check(allowed_cpus(cpus, 1) == 1);
	bind_to(cpus[0]);
	calibrate();
	empty_calls();
	faults();
	mappings();
	yields();
	switch_of_processes();
	switch_of_threads();
	thread_lives();
	forks();
	puts("ok");
	return 0;
}
