/* membarrier: what each command answers, how long a registration lives, and whom a call interrupts.
 *
 * Without arguments: every errno, and the registrations over threads, fork, vfork and exec. What a kernel does not list in its answer to
 * QUERY it must refuse. True on Linux from 4.16 on, with or without restartable sequences.
 *
 * With --others calling: one thread on every CPU, all of which ask at once, --calls times in each form. They must come to an end.
 *
 * With --others spinning|sleeping|absent: the interrupts (row CAL of /proc/interrupts) of --calls calls of each form, and some of
 * the delayed one, beside one thread on every other CPU that spins in user mode, sleeps, or is not there.
 */
#include "../include/workload.h"
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MEMBARRIER_CMD_FLAG_CPU
#define MEMBARRIER_CMD_FLAG_CPU 1
#endif

/* The names of older headers differ; the numbers are the interface. */
enum {
	QUERY = 0,
	GLOBAL = 1,
	GLOBAL_EXPEDITED = 2,
	REGISTER_GLOBAL_EXPEDITED = 4,
	PRIVATE_EXPEDITED = 8,
	REGISTER_PRIVATE_EXPEDITED = 16,
	SYNC_CORE = 32,
	REGISTER_SYNC_CORE = 64,
	RSEQ = 128,
	REGISTER_RSEQ = 256,
	GET_REGISTRATIONS = 512,
};

static int supported;

static int membarrier(int command, unsigned flags, int cpu)
{
	return (int)syscall(SYS_membarrier, command, flags, cpu);
}

static void gives(int command, unsigned flags, int cpu, int expected)
{
	int result = membarrier(command, flags, cpu);
	if (result != expected)
		fail("membarrier(%d, %u, %d) gave %d (%s), not %d", command, flags, cpu, result, strerror(errno), expected);
}

static void refuses(int command, unsigned flags, int cpu, int error)
{
	errno = 0;
	int result = membarrier(command, flags, cpu);
	if (result != -1 || errno != error)
		fail("membarrier(%d, %u, %d) gave %d (%s), not %s", command, flags, cpu, result, strerror(errno), strerror(error));
}

/* The private forms: command, registration, the registrations that the latter shows. */
static const struct form {
	int command, registration, shown;
} forms[] = {
	{PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED},
	{SYNC_CORE, REGISTER_SYNC_CORE, REGISTER_SYNC_CORE | REGISTER_PRIVATE_EXPEDITED},
	{RSEQ, REGISTER_RSEQ, REGISTER_RSEQ | REGISTER_PRIVATE_EXPEDITED},
};
#define FORMS (sizeof forms / sizeof *forms)

static int is_supported(int command)
{
	return (supported & command) == command;
}

static void registrations_are(int expected)
{
	if (is_supported(GET_REGISTRATIONS))
		gives(GET_REGISTRATIONS, 0, 0, expected);
	else
		refuses(GET_REGISTRATIONS, 0, 0, EINVAL);
}

/* Runs `body` in a forked child, which must come to its end. */
static void in_child(void (*body)(void))
{
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		body();
		_exit(0);
	}
	int status;
	check(waitpid(child, &status, 0) == child);
	if (status != 0)
		fail("a child ended with status %#x", status);
}

/* ---- numbers ---- */

static void numbers(void)
{
	supported = membarrier(QUERY, 0, 0);
	check(supported > 0);
	int always = GLOBAL | GLOBAL_EXPEDITED | REGISTER_GLOBAL_EXPEDITED | PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED;
	if ((supported & always) != always)
		fail("QUERY gave %#x, without some of %#x", supported, always);
	for (size_t i = 0; i < FORMS; i++)
		check(is_supported(forms[i].command) == is_supported(forms[i].registration));
	gives(QUERY, 0, -1, supported);

	static const int unknown[] = {-1, 3, 5, 9, 24, 0x3ff, 1024, 1 << 30, (int)0x80000000};
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		refuses(unknown[i], 0, 0, EINVAL);
		refuses(unknown[i], 1, 0, EINVAL);
	}
	for (int command = 0; command <= GET_REGISTRATIONS; command = command ? command * 2 : 1) {
		if (command && !is_supported(command))
			refuses(command, 0, 0, EINVAL);
		if (command != RSEQ)
			refuses(command, MEMBARRIER_CMD_FLAG_CPU, 0, EINVAL);
		refuses(command, 2, 0, EINVAL);
		refuses(command, 0x80000000u, 0, EINVAL);
		refuses(command, 3, 0, EINVAL);
	}
	/* The upper halves of the registers do not count. */
	check(syscall(SYS_membarrier, 0x100000000L, 0x100000000L, 0L) == supported);
}

/* ---- before and after registration ---- */

static void unregistered(void)
{
	registrations_are(0);
	for (size_t i = 0; i < FORMS; i++)
		if (is_supported(forms[i].command)) {
			refuses(forms[i].command, 0, 0, EPERM);
			refuses(forms[i].command, 8, 0, EINVAL);
		}
	if (is_supported(RSEQ))
		refuses(RSEQ, MEMBARRIER_CMD_FLAG_CPU, 0, EPERM);
	gives(GLOBAL, 0, 0, 0);
	gives(GLOBAL, 0, -1, 0);
	gives(GLOBAL_EXPEDITED, 0, 0, 0);
	registrations_are(0);
}

static const struct form *form;

/* In a child that has no registration: one form by itself serves itself and no other. */
static void one_form(void)
{
	for (int twice = 0; twice < 2; twice++) {
		gives(form->registration, 0, 0, 0);
		registrations_are(form->shown);
	}
	for (size_t i = 0; i < FORMS; i++) {
		if (!is_supported(forms[i].command))
			continue;
		if (&forms[i] == form)
			gives(form->command, 0, 12345, 0);
		else
			refuses(forms[i].command, 0, 0, EPERM);
	}
	if (form->command == RSEQ) {
		gives(RSEQ, MEMBARRIER_CMD_FLAG_CPU, 0, 0);
		gives(RSEQ, MEMBARRIER_CMD_FLAG_CPU, 100000, 0);
		gives(RSEQ, MEMBARRIER_CMD_FLAG_CPU, -1, 0);
	}
}

static void register_global(void)
{
	gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
	gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
	registrations_are(REGISTER_GLOBAL_EXPEDITED);
	gives(GLOBAL_EXPEDITED, 0, 0, 0);
	refuses(PRIVATE_EXPEDITED, 0, 0, EPERM);
}

static void registrations(void)
{
	for (size_t i = 0; i < FORMS; i++)
		if (is_supported(forms[i].command)) {
			form = &forms[i];
			in_child(one_form);
		}
	in_child(register_global);
	registrations_are(0);
}

/* ---- threads, fork, vfork, exec ---- */

static void *register_in_thread(void *unused)
{
	gives(REGISTER_PRIVATE_EXPEDITED, 0, 0, 0);
	gives(PRIVATE_EXPEDITED, 0, 0, 0);
	return unused;
}

static void inherits(void)
{
	registrations_are(REGISTER_PRIVATE_EXPEDITED);
	gives(PRIVATE_EXPEDITED, 0, 0, 0);
	gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
	registrations_are(REGISTER_PRIVATE_EXPEDITED | REGISTER_GLOBAL_EXPEDITED);
}

static int share(void *unused)
{
	(void)unused;
	gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
	return 0;
}

static void lives(void)
{
	pthread_t thread;
	check(pthread_create(&thread, NULL, register_in_thread, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
	gives(PRIVATE_EXPEDITED, 0, 0, 0);
	in_child(inherits);
	registrations_are(REGISTER_PRIVATE_EXPEDITED);

	static char stack[65536] __attribute__((aligned(16)));
	pid_t child = clone(share, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	int status;
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	registrations_are(REGISTER_PRIVATE_EXPEDITED | REGISTER_GLOBAL_EXPEDITED);
}

/* ---- whom a call interrupts ---- */

#define MOST_THREADS 63

static int cpus[MOST_THREADS + 1], ready;
static uint32_t over;

static void *be_spinning(void *number)
{
	bind_to(cpus[(long)number]);
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		relax();
	return number;
}

static void *be_sleeping(void *number)
{
	bind_to(cpus[(long)number]);
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		syscall(SYS_futex, &over, FUTEX_WAIT, 0, NULL, NULL, 0);
	return number;
}

/* The interrupts of all CPUs while so many calls are made. Where one emulator thread runs all CPUs in turn, a spinning thread may stand
 * still in a timer interrupt, and a kernel that need not interrupt it there would make many calls before it goes on: hence the pause.
 */
static long count(const char *name, int command, long calls, int threads)
{
	long before = interrupt_row("CAL:");
	for (long i = 0; i < calls; i++) {
		gives(command, 0, 0, 0);
		relax();
	}
	long after = interrupt_row("CAL:");
	check(before >= 0 && after >= before);
	printf("case=%s threads=%d operations=%ld interrupts=%ld\n", name, threads, calls, after - before);
	fflush(stdout);
	return after - before;
}

/* Each call must interrupt those threads that spin. A thread that its CPU's timer has just taken into the kernel needs no interrupt, and
 * other interrupts of the system's may come on top: five in a hundred are allowed either way.
 */
static void count_and_check(const char *name, int command, long calls, int threads, int spinning)
{
	long expected = calls * spinning, got = count(name, command, calls, threads);
	if (labs(got - expected) > calls / 20 + 4)
		fail("%s: %ld interrupts, not %ld", name, got, expected);
}

static void *be_calling(void *calls)
{
	bind_to(cpus[__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST)]);
	for (long i = 0; i < (long)calls; i++) {
		gives(PRIVATE_EXPEDITED, 0, 0, 0);
		gives(GLOBAL_EXPEDITED, 0, 0, 0);
		gives(SYNC_CORE, 0, 0, 0);
		gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
		if (i % 64 == 0)
			gives(GLOBAL, 0, 0, 0);
	}
	return calls;
}

static void storm(long calls)
{
	int threads = allowed_cpus(cpus, MOST_THREADS);
	pthread_t list[MOST_THREADS];
	gives(REGISTER_PRIVATE_EXPEDITED, 0, 0, 0);
	gives(REGISTER_SYNC_CORE, 0, 0, 0);
	for (int i = 0; i < threads; i++)
		check(pthread_create(&list[i], NULL, be_calling, (void *)calls) == 0);
	for (int i = 0; i < threads; i++)
		check(pthread_join(list[i], NULL) == 0);
}

static void counts(const char *others, long calls)
{
	int threads = allowed_cpus(cpus, MOST_THREADS + 1) - 1;
	int spinning = strcmp(others, "spinning") == 0, sleeping = strcmp(others, "sleeping") == 0;
	if (!spinning && !sleeping && strcmp(others, "absent") != 0)
		refuse("--others %s: spinning, sleeping, absent or calling is needed", others);
	if (!spinning && !sleeping)
		threads = 0;
	pthread_t list[MOST_THREADS];
	bind_to(cpus[0]);
	for (long i = 0; i < threads; i++)
		check(pthread_create(&list[i], NULL, spinning ? be_spinning : be_sleeping, (void *)(i + 1)) == 0);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) != threads)
		usleep(100);
	gives(REGISTER_PRIVATE_EXPEDITED, 0, 0, 0);
	gives(REGISTER_SYNC_CORE, 0, 0, 0);
	gives(REGISTER_GLOBAL_EXPEDITED, 0, 0, 0);
	count_and_check("private", PRIVATE_EXPEDITED, calls, threads, spinning ? threads : 0);
	count_and_check("global-expedited", GLOBAL_EXPEDITED, calls, threads, spinning ? threads : 0);
	count_and_check("sync-core", SYNC_CORE, calls, threads, spinning ? threads : 0);
	count("delayed", GLOBAL, calls / 100 + 1, threads);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &over, FUTEX_WAKE, MOST_THREADS, NULL, NULL, 0);
	for (int i = 0; i < threads; i++)
		check(pthread_join(list[i], NULL) == 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "after-exec") == 0) {
		supported = membarrier(QUERY, 0, 0);
		unregistered();
		puts("ok");
		return 0;
	}
	static const char *const names[] = {"others", "calls", NULL};
	only_options(argc, argv, names);
	const char *others = word_option(argc, argv, "others", NULL);
	long calls = number_option(argc, argv, "calls", 1, 1000);
	if (others) {
		if (strcmp(others, "calling") == 0)
			storm(calls);
		else
			counts(others, calls);
		puts("ok");
		return 0;
	}
	numbers();
	unregistered();
	registrations();
	lives();
	execl("/proc/self/exe", argv[0], "after-exec", NULL);
	fail("exec: %s", strerror(errno));
}
