/* Signals in every form that programs rely on, first one rule at a time, then all at once.
 *
 * Rules: handlers with siginfo, alternate stacks, masks during a handler, SA_RESTART against EINTR, faults with their address and
 * code, recovery by siglongjmp and by changing the saved registers, pending signals and sigtimedwait, timers, SIGCHLD, default
 * actions. Storm: threads send each other signals by tgkill and kill while timers fire and faults are recovered, and vector
 * registers, errno and the stack of the interrupted code must come out unchanged. The storm counts real-time signals, which may
 * not be lost.
 */
#include "../include/workload.h"
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#define STACK 65536

typedef void handler(int, siginfo_t *, void *);

static void install(int signal, handler *function, int flags)
{
	struct sigaction action = {.sa_sigaction = function, .sa_flags = SA_SIGINFO | flags};
	sigemptyset(&action.sa_mask);
	check(sigaction(signal, &action, NULL) == 0);
}

static void send_to_thread(pid_t thread, int signal)
{
	check(syscall(SYS_tgkill, getpid(), thread, signal) == 0);
}

/* ---- one rule at a time ---- */

static volatile sig_atomic_t seen, seen_code, seen_pid, seen_value, nested_too_early;

static void note(int signal, siginfo_t *information, void *context)
{
	(void)context;
	seen = signal;
	seen_code = information->si_code;
	seen_pid = information->si_pid;
	seen_value = information->si_value.sival_int;
}

static void sources_of_a_signal(void)
{
	install(SIGUSR1, note, 0);
	check(kill(getpid(), SIGUSR1) == 0 && seen == SIGUSR1);
	check(seen_code == SI_USER && seen_pid == getpid());
	seen = 0;
	send_to_thread((pid_t)syscall(SYS_gettid), SIGUSR1);
	check(seen == SIGUSR1 && seen_code == SI_TKILL && seen_pid == getpid());
	seen = 0;
	check(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 4711}) == 0);
	check(seen == SIGUSR1 && seen_code == SI_QUEUE && seen_value == 4711);
	check(kill(getpid(), 0) == 0);
	check(kill(getpid(), 65) == -1 && errno == EINVAL);
	check(kill(0x3fffffff, SIGUSR1) == -1 && errno == ESRCH);
}

static void count_nesting(int signal, siginfo_t *information, void *context)
{
	static volatile sig_atomic_t inside;
	(void)information, (void)context;
	if (inside)
		nested_too_early = 1;
	inside = 1;
	if (seen++ == 0)
		kill(getpid(), signal);
	for (int i = 0; i < 1000; i++)
		relax();
	inside = 0;
}

static void masks(void)
{
	seen = nested_too_early = 0;
	install(SIGUSR2, count_nesting, 0);
	check(kill(getpid(), SIGUSR2) == 0);
	check(seen == 2);
	if (nested_too_early)
		fail("a signal interrupted its own handler");

	sigset_t set, before, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	check(sigprocmask(SIG_BLOCK, &set, &before) == 0 && !sigismember(&before, SIGUSR1));
	seen = 0;
	check(kill(getpid(), SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0);
	check(seen == 0 && sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
	siginfo_t information;
	struct timespec limit = {0, 20000000};
	check(sigtimedwait(&set, &information, &limit) == SIGUSR1 && information.si_pid == getpid());
	check(sigtimedwait(&set, &information, &limit) == -1 && errno == EAGAIN);
	check(kill(getpid(), SIGUSR1) == 0 && seen == 0);
	check(sigsuspend(&before) == -1 && errno == EINTR && seen == SIGUSR1);
	check(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
}

static volatile uintptr_t handler_stack;

static void note_stack(int signal, siginfo_t *information, void *context)
{
	char here;
	(void)signal, (void)information, (void)context;
	handler_stack = (uintptr_t)&here;
}

static void alternate_stacks(void)
{
	char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	stack_t stack = {.ss_sp = memory, .ss_size = STACK}, old;
	check(sigaltstack(&stack, NULL) == 0);
	install(SIGUSR1, note_stack, SA_ONSTACK);
	check(kill(getpid(), SIGUSR1) == 0);
	if (handler_stack < (uintptr_t)memory || handler_stack >= (uintptr_t)memory + STACK)
		fail("the handler ran at %lx, not on the alternate stack", (unsigned long)handler_stack);
	install(SIGUSR1, note_stack, 0);
	check(kill(getpid(), SIGUSR1) == 0);
	check(handler_stack < (uintptr_t)memory || handler_stack >= (uintptr_t)memory + STACK);
	check(sigaltstack(NULL, &old) == 0 && old.ss_sp == memory && old.ss_size == STACK && old.ss_flags == 0);
	stack_t small = {.ss_sp = memory, .ss_size = 100};
	check(sigaltstack(&small, NULL) == -1 && errno == ENOMEM);
	stack_t off = {.ss_flags = SS_DISABLE};
	check(sigaltstack(&off, NULL) == 0 && munmap(memory, STACK) == 0);
}

static void alarm_after(long microseconds)
{
	struct itimerval timer = {.it_value = {microseconds / 1000000, microseconds % 1000000}};
	check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static int restart_pipe[2];

static void note_and_write(int signal, siginfo_t *information, void *context)
{
	note(signal, information, context);
	if (write(restart_pipe[1], "x", 1) != 1)
		_exit(1);
}

static void interrupted_calls(void)
{
	char byte;
	check(pipe(restart_pipe) == 0);
	install(SIGALRM, note, 0);
	seen = 0;
	alarm_after(20000);
	check(read(restart_pipe[0], &byte, 1) == -1 && errno == EINTR && seen == SIGALRM);
	install(SIGALRM, note_and_write, SA_RESTART);
	seen = 0;
	alarm_after(20000);
	if (read(restart_pipe[0], &byte, 1) != 1)
		fail("a read was not restarted although its handler said so: %s", strerror(errno));
	check(seen == SIGALRM);
	/* These give EINTR even with SA_RESTART. */
	install(SIGALRM, note, SA_RESTART);
	alarm_after(20000);
	check(pause() == -1 && errno == EINTR);
	alarm_after(20000);
	struct timespec wish = {10, 0}, left;
	check(nanosleep(&wish, &left) == -1 && errno == EINTR);
	check(left.tv_sec <= 9 && left.tv_nsec > 0);
	alarm_after(20000);
	struct pollfd nothing = {.fd = restart_pipe[0], .events = POLLIN};
	check(poll(&nothing, 1, 10000) == -1 && errno == EINTR);
	close(restart_pipe[0]);
	install(SIGPIPE, note, 0);
	seen = 0;
	check(write(restart_pipe[1], "x", 1) == -1 && errno == EPIPE && seen == SIGPIPE);
	close(restart_pipe[1]);
}

/* ---- faults ---- */

static __thread sigjmp_buf recovery;
static __thread volatile int fault_code;
static __thread void *volatile fault_address;

static void recover(int signal, siginfo_t *information, void *context)
{
	(void)context;
	fault_code = information->si_code;
	fault_address = information->si_addr;
	siglongjmp(recovery, signal);
}

static void expect_fault(volatile char *place, int write, int signal, int code)
{
	int got = sigsetjmp(recovery, 1);
	if (got == 0) {
		if (write)
			*place = 1;
		else
			(void)*place;
		fail("an access to %p did not fault", (void *)place);
	}
	if (got != signal || fault_code != code || fault_address != (void *)place)
		fail("a fault at %p gave signal %d code %d address %p, not signal %d code %d", (void *)place, got, fault_code,
		     fault_address, signal, code);
}

static long divide(long a, volatile long b)
{
	return a / b;
}

static void faults(void)
{
	install(SIGSEGV, recover, 0);
	install(SIGFPE, recover, 0);
	install(SIGILL, recover, 0);
	install(SIGTRAP, recover, 0);
	volatile char *page = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page != MAP_FAILED && munmap((void *)(page + PAGE), PAGE) == 0);
	expect_fault(page + 5, 1, SIGSEGV, SEGV_ACCERR);
	expect_fault(page + PAGE + 7, 0, SIGSEGV, SEGV_MAPERR);
	expect_fault(page + PAGE + 7, 1, SIGSEGV, SEGV_MAPERR);
	expect_fault((volatile char *)8, 0, SIGSEGV, SEGV_MAPERR);
	check(mprotect((void *)page, PAGE, PROT_NONE) == 0);
	expect_fault(page, 0, SIGSEGV, SEGV_ACCERR);
	/* An address that is not canonical faults without an address. */
	int got = sigsetjmp(recovery, 1);
	if (got == 0) {
		(void)*(volatile char *)0x8000000000001000ul;
		fail("a non-canonical address was readable");
	}
	check(got == SIGSEGV && fault_code == SI_KERNEL);
	/* The kernel's half is not ours, mapped or not. */
	expect_fault((volatile char *)0xffffffff80200000ul, 0, SIGSEGV, SEGV_MAPERR);
	/* A page without the right to execute. */
	check(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) == 0);
	*page = (char)0xc3;
	got = sigsetjmp(recovery, 1);
	if (got == 0) {
		((void (*)(void))page)();
		fail("a page without PROT_EXEC was executed");
	}
	check(got == SIGSEGV && fault_code == SEGV_ACCERR && fault_address == (void *)page);
	got = sigsetjmp(recovery, 1);
	if (got == 0) {
		if (divide(5, 0))
			puts("never");
		fail("a division by zero went through");
	}
	check(got == SIGFPE && fault_code == FPE_INTDIV);
	got = sigsetjmp(recovery, 1);
	if (got == 0)
		__asm__ volatile("ud2");
	check(got == SIGILL);
	got = sigsetjmp(recovery, 1);
	if (got == 0) {
		__asm__ volatile("int3");
		fail("int3 went through");
	}
	check(got == SIGTRAP);
	/* A system call with a bad pointer is an error, not a signal. */
	int descriptors[2];
	check(pipe(descriptors) == 0);
	check(syscall(SYS_write, descriptors[1], 8ul, 1) == -1 && errno == EFAULT);
	check(syscall(SYS_write, descriptors[1], 0xffff800000000000ul, 1) == -1 && errno == EFAULT);
	close(descriptors[0]);
	close(descriptors[1]);
	check(munmap((void *)page, PAGE) == 0);
}

/* Reads through an address; the handler can send it on to the label after the read. */
long read_or_skip(volatile long *place);
__asm__(".text\n.globl read_or_skip\n.type read_or_skip, @function\nread_or_skip:\n\t"
	"mov (%rdi), %rax\n\tret\n.globl read_skipped\nread_skipped:\n\tmov $-99, %rax\n\tret\n");
extern char read_skipped[];

static void skip_read(int signal, siginfo_t *information, void *context)
{
	(void)signal, (void)information;
	ucontext_t *registers = context;
	if (registers->uc_mcontext.gregs[REG_RIP] != (greg_t)(uintptr_t)read_or_skip)
		end_with(1, "a fault at %llx", (unsigned long long)registers->uc_mcontext.gregs[REG_RIP]);
	registers->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)read_skipped;
}

static void changed_registers(void)
{
	install(SIGSEGV, skip_read, 0);
	check(read_or_skip((volatile long *)16) == -99);
	long value = 5;
	check(read_or_skip(&value) == 5);
	install(SIGSEGV, recover, 0);
}

/* ---- default actions and children ---- */

static int status_of_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	check(waitpid(pid, &status, WUNTRACED) == pid);
	if (WIFSTOPPED(status)) {
		int later;
		check(kill(pid, SIGCONT) == 0 && waitpid(pid, &later, 0) == pid && WIFEXITED(later));
	}
	return status;
}

static void die_of_term(void) { kill(getpid(), SIGTERM); }
static void die_of_kill(void) { sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL); kill(getpid(), SIGKILL); }
static void die_of_abort(void) { abort(); }
static void stop_oneself(void) { kill(getpid(), SIGSTOP); }
static void ignore_child_signal(void) { kill(getpid(), SIGCHLD); kill(getpid(), SIGURG); kill(getpid(), SIGWINCH); }
static void die_of_fault(void) { signal(SIGSEGV, SIG_DFL); *(volatile int *)0 = 1; }
/* A fault whose signal is blocked or ignored ends the process instead of looping. */
static void die_of_blocked_fault(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*(volatile int *)0 = 1;
}
static void die_of_ignored_fault(void) { signal(SIGSEGV, SIG_IGN); *(volatile int *)0 = 1; }
/* No stack to put the handler's frame on: SIGSEGV, and not a loop. */
static void die_without_stack(void)
{
	install(SIGUSR1, note, 0);
	__asm__ volatile("mov $16, %%rsp; syscall" : : "a"(SYS_tgkill), "D"(getpid()), "S"(syscall(SYS_gettid)), "d"(SIGUSR1) : "memory");
	__builtin_unreachable();
}

static void default_actions(void)
{
	static const struct {
		void (*body)(void);
		int signal;
	} deaths[] = {
		{die_of_term, SIGTERM},		{die_of_kill, SIGKILL},		   {die_of_abort, SIGABRT},
		{die_of_fault, SIGSEGV},	{die_of_blocked_fault, SIGSEGV},   {die_of_ignored_fault, SIGSEGV},
		{die_without_stack, SIGSEGV},
	};
	for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
		int status = status_of_child(deaths[i].body);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != deaths[i].signal)
			fail("death %zu: status %x instead of signal %d", i, status, deaths[i].signal);
	}
	int status = status_of_child(ignore_child_signal);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	status = status_of_child(stop_oneself);
	check(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);

	install(SIGCHLD, note, SA_RESTART);
	seen = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(3);
	check(waitpid(pid, &status, 0) == pid);
	for (int i = 0; i < 1000 && seen != SIGCHLD; i++)
		usleep(100);
	check(seen == SIGCHLD && seen_code == CLD_EXITED && seen_pid == pid);
	signal(SIGCHLD, SIG_DFL);
}

/* ---- the storm ---- */

#define STORM_THREADS 6
#define SENT_EACH 150

static pid_t storm_ids[STORM_THREADS];
static long received[STORM_THREADS], handled_realtime, handled_alarms, recovered;
static pthread_barrier_t storm_barrier;
static __thread int storm_self;

static void count_realtime(int signal, siginfo_t *information, void *context)
{
	(void)signal, (void)context;
	int saved = errno;
	if (information->si_code != SI_QUEUE && information->si_code != SI_TKILL)
		end_with(1, "a storm signal came with code %d", information->si_code);
	__atomic_fetch_add(&received[storm_self], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&handled_realtime, 1, __ATOMIC_RELAXED);
	__asm__ volatile("pxor %%xmm8, %%xmm8; pxor %%xmm15, %%xmm15; pxor %%xmm0, %%xmm0" ::: "xmm0", "xmm8", "xmm15");
	errno = 12345;
	if (syscall(SYS_gettid) != storm_ids[storm_self])
		end_with(1, "a signal for one thread ran on another");
	errno = saved;
}

static void count_alarm(int signal, siginfo_t *information, void *context)
{
	(void)signal, (void)information, (void)context;
	__atomic_fetch_add(&handled_alarms, 1, __ATOMIC_RELAXED);
}

/* Registers that hold a pattern through whatever interrupts this loop. */
static void keep_registers(uint64_t pattern)
{
	uint64_t turns = 300, integer = pattern, vector_low;
	__asm__ volatile("movq %[pattern], %%xmm8; mov %[pattern], %%r12; mov %[pattern], %%r9\n\t"
			 "1: pause; dec %[turns]; jnz 1b\n\t"
			 "movq %%xmm8, %[vector]; mov %%r12, %[integer]; xor %%r9, %[integer]; add %%r12, %[integer]"
			 : [turns] "+r"(turns), [integer] "=&r"(integer), [vector] "=&r"(vector_low)
			 : [pattern] "r"(pattern)
			 : "xmm8", "r9", "r12", "cc", "memory");
	if (integer != pattern || vector_low != pattern)
		fail("registers changed under a signal: %llx and %llx instead of %llx", (unsigned long long)integer,
		     (unsigned long long)vector_low, (unsigned long long)pattern);
}

static void fault_once(volatile char *forbidden)
{
	if (sigsetjmp(recovery, 1) == 0) {
		*forbidden = 1;
		fail("a write to a read-only page went through");
	}
	if (fault_address != (void *)forbidden || fault_code != SEGV_ACCERR)
		fail("a fault in the storm: address %p code %d", fault_address, fault_code);
	__atomic_fetch_add(&recovered, 1, __ATOMIC_RELAXED);
}

static void *storm_thread(void *argument)
{
	storm_self = (int)(long)argument;
	char *memory = mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED && mprotect(memory + STACK, PAGE, PROT_READ) == 0);
	stack_t stack = {.ss_sp = memory, .ss_size = STACK};
	check(sigaltstack(&stack, NULL) == 0);
	storm_ids[storm_self] = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&storm_barrier);
	for (int i = 0; i < SENT_EACH; i++) {
		send_to_thread(storm_ids[(storm_self + i) % STORM_THREADS], SIGRTMIN + i % 3);
		keep_registers(0x0123456789abcdefull * (uint64_t)(i + 1) + (uint64_t)storm_self);
		if (i % 5 == 0)
			fault_once(memory + STACK + i);
		if (i % 7 == 0)
			usleep(50);
		errno = 0;
		sched_yield();
		check(errno == 0);
	}
	/* Stay until all have been received: a signal for a thread that has ended is lost by right. */
	for (int i = 0; __atomic_load_n(&handled_realtime, __ATOMIC_RELAXED) < (long)STORM_THREADS * SENT_EACH; i++) {
		if (i == 20000)
			fail("only %ld of %d real-time signals arrived", handled_realtime, STORM_THREADS * SENT_EACH);
		usleep(500);
	}
	pthread_barrier_wait(&storm_barrier);
	stack.ss_flags = SS_DISABLE;
	check(sigaltstack(&stack, NULL) == 0 && munmap(memory, STACK + PAGE) == 0);
	return NULL;
}

static void storm(void)
{
	for (int i = 0; i < 3; i++)
		install(SIGRTMIN + i, count_realtime, SA_ONSTACK | SA_RESTART);
	install(SIGALRM, count_alarm, SA_ONSTACK | SA_RESTART);
	install(SIGUSR1, count_alarm, SA_ONSTACK | SA_RESTART);
	install(SIGSEGV, recover, SA_ONSTACK);
	check(pthread_barrier_init(&storm_barrier, NULL, STORM_THREADS) == 0);
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	check(setitimer(ITIMER_REAL, &often, NULL) == 0);
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	struct itimerspec quick = {{0, 1500000}, {0, 1500000}};
	check(timer_settime(timer, 0, &quick, NULL) == 0);
	pthread_t threads[STORM_THREADS];
	for (long i = 0; i < STORM_THREADS; i++)
		check(pthread_create(&threads[i], NULL, storm_thread, (void *)i) == 0);
	for (int i = 0; i < STORM_THREADS; i++)
		check(pthread_join(threads[i], NULL) == 0);
	while (__atomic_load_n(&handled_alarms, __ATOMIC_RELAXED) < 5)
		usleep(500);
	check(setitimer(ITIMER_REAL, &never, NULL) == 0 && timer_delete(timer) == 0);
	if (handled_realtime != (long)STORM_THREADS * SENT_EACH)
		fail("%ld real-time signals arrived, %d were sent", handled_realtime, STORM_THREADS * SENT_EACH);
	if (recovered != (long)STORM_THREADS * (SENT_EACH / 5))
		fail("%ld faults recovered, %d made", recovered, STORM_THREADS * (SENT_EACH / 5));
}

int main(void)
{
	sources_of_a_signal();
	masks();
	alternate_stacks();
	interrupted_calls();
	faults();
	changed_registers();
	default_actions();
	storm();
	puts("ok");
	return 0;
}
