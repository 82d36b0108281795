/* Restartable sequences: rseq(2), and membarrier's form for them.
 *
 * Each thread takes back the registration that libc may have made for it, and makes its own where it needs one. --part NAME does one of these,
 * without it all are done:
 *
 *   numbers     every errno of registering and unregistering
 *   cpu         the number in memory is that of the CPU, wherever the thread is sent
 *   counting    two threads a CPU count in per-CPU words by load, delay and store; no count is lost. With --control the threads are not
 *               registered, and counts must be lost: the test can fail
 *   signals     a handler that strikes a sequence finds itself returning to the abort handler
 *   broken      sequences that make no sense end in SIGSEGV
 *   life        fork copies a registration, a thread and a new program start without
 *   barriers    one call to membarrier ends a sequence that would run for ever, on all CPUs and on one by its number
 */
#include "../include/workload.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "interface.h"

static void on_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check(sched_setaffinity(0, sizeof set, &set) == 0);
}

static int cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Runs a piece of the test in a child; gives how it ended. */
static int ending_of(void (*work)(void))
{
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		work();
		exit(0);
	}
	int status;
	check(waitpid(child, &status, 0) == child);
	return status;
}

static void in_child(void (*work)(void))
{
	check(ending_of(work) == 0);
}

/* ---- numbers ---- */

static void numbers(void)
{
	static struct area other;
	take_back_the_library_s();
	refuses(&area, sizeof area, UNREGISTER, SIGNATURE, EINVAL);
	refuses(&area, sizeof area, 2, SIGNATURE, EINVAL);
	refuses(&area, sizeof area, UNREGISTER | 2, SIGNATURE, EINVAL);
	refuses(&area, 0, 0, SIGNATURE, EINVAL);
	refuses(&area, 31, 0, SIGNATURE, EINVAL);
	refuses((char *)&area + 8, sizeof area, 0, SIGNATURE, EINVAL);
	refuses((void *)0xffff800000000000, sizeof area, 0, SIGNATURE, EFAULT);
	area.cpu = -1u;
	check(rseq(&area, sizeof area, 0, SIGNATURE) == 0);
	check(area.cpu < (uint32_t)cpus() && area.cpu_start == area.cpu);
	refuses(&area, sizeof area, 0, SIGNATURE, EBUSY);
	refuses(&area, sizeof area, 0, OTHER_SIGNATURE, EPERM);
	refuses(&other, sizeof other, 0, SIGNATURE, EINVAL);
	refuses(&area, 31, 0, SIGNATURE, EINVAL);
	refuses(&other, sizeof other, UNREGISTER, SIGNATURE, EINVAL);
	refuses(&area, 31, UNREGISTER, SIGNATURE, EINVAL);
	refuses(&area, sizeof area, UNREGISTER, OTHER_SIGNATURE, EPERM);
	refuses(&area, sizeof area, UNREGISTER | 2, SIGNATURE, EINVAL);
	/* The upper halves of the registers do not count. */
	check(syscall(SYS_rseq, &area, 0x100000020L, 0x100000001L, 0x100000000L | SIGNATURE) == 0);
	check(area.cpu == -1u && area.cpu_start == 0);
	refuses(&area, sizeof area, UNREGISTER, SIGNATURE, EINVAL);
}

/* ---- the number of the CPU ---- */

static void cpu(void)
{
	enter();
	for (int round = 0; round < 20; round++)
		for (int cpu = 0; cpu < cpus(); cpu++) {
			on_cpu(cpu);
			volatile struct area *seen = &area;
			if (seen->cpu != (uint32_t)cpu || seen->cpu_start != (uint32_t)cpu)
				fail("on CPU %d the area says %u and %u", cpu, seen->cpu_start, seen->cpu);
		}
	leave();
}

/* ---- counting ---- */

/* One sequence: if the thread is on `cpu`, adds 1 to the word by a load, a delay and a store. Gives whether it came to its end.
 * The abort handler stands behind the signature. */
__attribute__((noinline)) static int count_on(uint32_t cpu, long *word)
{
	long value;
	unsigned turns = 1000;
	int done = 0;
	asm volatile(
		".pushsection .data.sequences, \"aw\"\n"
		".balign 32\n"
		"10: .long 0, 0\n"
		".quad 11f, 12f - 11f, 14f\n"
		".popsection\n"
		"leaq 10b(%%rip), %%rax\n"
		"movq %%rax, %[sequence]\n"
		"11: cmpl %[cpu], %[here]\n"
		"jne 15f\n"
		"movq (%[word]), %[value]\n"
		"13: decl %[turns]\n"
		"jnz 13b\n"
		"incq %[value]\n"
		"movq %[value], (%[word])\n"
		"12: incl %[done]\n"
		"jmp 15f\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"14:\n"
		"15:\n"
		: [value] "=&r"(value), [turns] "+&r"(turns), [done] "+&r"(done)
		: [cpu] "r"(cpu), [word] "r"(word), [here] "m"(area.cpu), [sequence] "m"(area.sequence), [signature] "i"(SIGNATURE)
		: "rax", "memory", "cc");
	return done;
}

struct counter {
	long value;
	char apart[120];
};

static struct counter counters[256];
static long wanted = 20000;
static int control;
static long aborted;

static void *count(void *unused)
{
	long retries = 0;
	if (control) {
		take_back_the_library_s();
		area.cpu = 0;
	} else {
		enter();
	}
	for (long done = 0; done < wanted;) {
		uint32_t cpu = control ? 0 : ((volatile struct area *)&area)->cpu_start;
		if (count_on(cpu, &counters[cpu].value))
			done++;
		else
			retries++;
	}
	if (!control)
		leave();
	__atomic_fetch_add(&aborted, retries, __ATOMIC_RELAXED);
	return unused;
}

static void counting(void)
{
	int threads = 2 * cpus();
	pthread_t all[threads];
	memset(counters, 0, sizeof counters);
	aborted = 0;
	for (int i = 0; i < threads; i++)
		check(pthread_create(&all[i], NULL, count, NULL) == 0);
	for (int i = 0; i < threads; i++)
		check(pthread_join(all[i], NULL) == 0);
	long sum = 0;
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		sum += counters[i].value;
	if (control && sum == threads * wanted)
		fail("without a registration no count was lost: this test cannot fail");
	if (!control && sum != threads * wanted)
		fail("%ld counts of %ld were lost", threads * wanted - sum, threads * wanted);
	if (!control && aborted == 0)
		fail("no sequence was ever aborted");
}

/* ---- signals ---- */

static volatile long struck, misplaced;
extern char signal_start[], signal_end[], signal_abort[];

static void on_signal(int signal, siginfo_t *information, void *context)
{
	(void)signal, (void)information;
	const uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	struck += at == (uintptr_t)signal_abort;
	misplaced += at >= (uintptr_t)signal_start && at < (uintptr_t)signal_end;
}

/* A sequence without end; only an abort leaves it. (It pauses seldom: on the emulator's instruction clock a pause costs microseconds.) */
__attribute__((noinline)) static void spin_in_a_sequence(struct area *mine)
{
	asm volatile(
		".pushsection .data.sequences, \"aw\"\n"
		".balign 32\n"
		"20: .long 0, 0\n"
		".quad signal_start, signal_end - signal_start, signal_abort\n"
		".popsection\n"
		"leaq 20b(%%rip), %%rax\n"
		"movq %%rax, %[sequence]\n"
		".globl signal_start, signal_end, signal_abort\n"
		"signal_start: movl $1000, %%eax\n"
		"1: decl %%eax\n"
		"jnz 1b\n"
		"pause\n"
		"jmp signal_start\n"
		"signal_end:\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"signal_abort:\n"
		:
		: [sequence] "m"(mine->sequence), [signature] "i"(SIGNATURE)
		: "rax", "memory", "cc");
}

static void signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	enter();
	check(sigaction(SIGALRM, &action, NULL) == 0);
	check(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (struck < 20 && misplaced == 0) {
		spin_in_a_sequence(&area);
		check(((volatile struct area *)&area)->sequence == 0);
	}
	check(setitimer(ITIMER_REAL, &never, NULL) == 0);
	if (misplaced)
		fail("a handler was to return into a sequence");
	leave();
}

#include "broken.h"

/* ---- fork, threads, exec ---- */

static void is_registered(void)
{
	refuses(&area, sizeof area, 0, SIGNATURE, EBUSY);
	leave();
}

static void *is_unregistered(void *unused)
{
	enter();
	leave();
	return unused;
}

static void run_again(void)
{
	execl("/proc/self/exe", "sequences", "--unregistered", "1", (char *)NULL);
	exit(8);
}

static void life(void)
{
	enter();
	in_child(is_registered);
	in_child(run_again);
	pthread_t thread;
	check(pthread_create(&thread, NULL, is_unregistered, NULL) == 0);
	check(pthread_join(thread, NULL) == 0);
	leave();
}

/* ---- barriers ---- */

#define RSEQ_BARRIER 128
#define REGISTER_RSEQ_BARRIER 256
#define ONE_CPU 1

static volatile long left;
static volatile int stop;

static void *spin(void *cpu)
{
	on_cpu((int)(intptr_t)cpu);
	enter();
	while (!stop) {
		spin_in_a_sequence(&area);
		left++;
	}
	leave();
	return NULL;
}

static int membarrier(int command, unsigned flags, int cpu)
{
	return (int)syscall(SYS_membarrier, command, flags, cpu);
}

/* The sequence runs for ever unless a call ends it. A call that comes between two sequences ends none, so there may be several. */
static void must_end_it(unsigned flags, int cpu)
{
	for (int round = 0; round < 50; round++)
		for (long before = left; left == before;)
			check(membarrier(RSEQ_BARRIER, flags, cpu) == 0);
}

static void barriers(void)
{
	if (cpus() < 2)
		return;
	on_cpu(0);
	check(membarrier(REGISTER_RSEQ_BARRIER, 0, 0) == 0);
	pthread_t spinner;
	check(pthread_create(&spinner, NULL, spin, (void *)1) == 0);
	must_end_it(0, 0);
	must_end_it(ONE_CPU, 1);
	must_end_it(ONE_CPU, -1);
	/* Another CPU's number does nothing to it. Other tasks may have had its CPU once or twice. */
	long before = left;
	for (int call = 0; call < 50; call++) {
		check(membarrier(RSEQ_BARRIER, ONE_CPU, 0) == 0);
		check(membarrier(RSEQ_BARRIER, ONE_CPU, 100000) == 0);
	}
	check(left - before < 25);
	stop = 1;
	while (membarrier(RSEQ_BARRIER, 0, 0) == 0 && stop == 1 && pthread_tryjoin_np(spinner, NULL) != 0)
		sched_yield();
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"control", "part", "unregistered", NULL};
	only_options(argc, argv, names);
	control = number_option(argc, argv, "control", 0, 0) != 0;
	if (number_option(argc, argv, "unregistered", 0, 0)) {
		take_back_the_library_s();
		is_unregistered(NULL);
		return 0;
	}
	static const struct {
		const char *name;
		void (*work)(void);
	} parts[] = {
		{"numbers", numbers}, {"cpu", cpu},	{"counting", counting}, {"signals", signals},
		{"broken", broken},   {"unreadable", unreadable}, {"life", life},	{"barriers", barriers},
	};
	const char *only = word_option(argc, argv, "part", control ? "counting" : NULL);
	int found = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!only || strcmp(only, parts[i].name) == 0) {
			in_child(parts[i].work);
			found = 1;
		}
	if (!found)
		refuse("--part %s: there is no such part", only);
	puts("ok");
	return 0;
}
