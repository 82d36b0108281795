/* What happens to a program from outside and at its edges: it is stopped and continued, its calls are interrupted and go on, timers
 * expire, futexes move its threads about, one of its threads replaces it, and by as much as can be handed over.
 *
 * Lower bounds of times are exact. Upper bounds are generous, because an emulated machine may stand still for a while.
 */
#include "../include/workload.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define MILLISECOND 1000000ULL

static volatile sig_atomic_t arrived, last_code;

static void note(int number, siginfo_t *information, void *context)
{
	(void)number, (void)context;
	arrived++;
	last_code = information->si_code;
}

static void handle(int number, int flags)
{
	struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | flags};
	check(sigaction(number, &action, NULL) == 0);
}

static void sleep_for(uint64_t duration)
{
	struct timespec rest = {.tv_sec = duration / 1000000000, .tv_nsec = duration % 1000000000};
	while (nanosleep(&rest, &rest) < 0)
		check(errno == EINTR);
}

static pid_t spawn(void)
{
	pid_t pid = fork();
	check(pid >= 0);
	return pid;
}

/* waitpid that does not mind the SIGCHLD which announces what it waits for. */
static int status_of(pid_t pid, int options)
{
	int status;
	pid_t got;
	while ((got = waitpid(pid, &status, options)) < 0 && errno == EINTR)
		;
	check(got == pid);
	return status;
}

static void expect_exit(pid_t pid, int code)
{
	int status = status_of(pid, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail("status %x instead of exit %d", status, code);
}

/* ---- stop and continue ---- */

static pid_t spawn_pausing(void)
{
	pid_t pid = spawn();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void stopping(void)
{
	handle(SIGCHLD, 0);
	arrived = 0;
	pid_t pid = spawn_pausing();
	check(kill(pid, SIGSTOP) == 0);
	int status = status_of(pid, WUNTRACED);
	check(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	check(arrived == 1 && last_code == CLD_STOPPED);
	check(kill(pid, SIGCONT) == 0);
	check(WIFCONTINUED(status_of(pid, WCONTINUED)));

	/* A stop of the terminal's kind, with no SIGCHLD; SIGTERM waits until the process runs again, SIGKILL does not. */
	handle(SIGCHLD, SA_NOCLDSTOP);
	sleep_for(20 * MILLISECOND);
	arrived = 0;
	check(kill(pid, SIGTSTP) == 0);
	check(WIFSTOPPED(status_of(pid, WUNTRACED)) && arrived == 0);
	check(kill(pid, SIGTERM) == 0);
	sleep_for(20 * MILLISECOND);
	check(waitpid(pid, &status, WNOHANG) == 0);
	check(kill(pid, SIGCONT) == 0);
	status = status_of(pid, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);

	pid = spawn_pausing();
	check(kill(pid, SIGSTOP) == 0 && WIFSTOPPED(status_of(pid, WUNTRACED)));
	check(kill(pid, SIGKILL) == 0);
	status = status_of(pid, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	signal(SIGCHLD, SIG_DFL);
}

/* ---- interrupted calls ---- */

static void alarm_in(uint64_t delay)
{
	struct itimerval timer = {.it_value.tv_usec = delay / 1000};
	check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void interrupting(void)
{
	int ends[2];
	char byte;
	check(pipe(ends) == 0);
	handle(SIGALRM, 0);
	alarm_in(20 * MILLISECOND);
	check(read(ends[0], &byte, 1) == -1 && errno == EINTR);

	handle(SIGALRM, SA_RESTART);
	arrived = 0;
	alarm_in(20 * MILLISECOND);
	pid_t pid = spawn();
	if (pid == 0) {
		sleep_for(100 * MILLISECOND);
		check(write(ends[1], "x", 1) == 1);
		_exit(0);
	}
	check(read(ends[0], &byte, 1) == 1 && arrived == 1);
	expect_exit(pid, 0);

	/* A sleep is interrupted by a handler whatever its flags, and says how much was left. */
	struct timespec wanted = {.tv_nsec = 500 * MILLISECOND}, rest = {0};
	alarm_in(20 * MILLISECOND);
	check(nanosleep(&wanted, &rest) == -1 && errno == EINTR);
	check(rest.tv_sec == 0 && rest.tv_nsec > 0 && rest.tv_nsec < (long)(500 * MILLISECOND));
	alarm_in(20 * MILLISECOND);
	check(poll(NULL, 0, 500) == -1 && errno == EINTR);
	close(ends[0]);
	close(ends[1]);
}

static int sleep_by_nanosleep(void)
{
	struct timespec wanted = {.tv_nsec = 150 * MILLISECOND};
	return nanosleep(&wanted, NULL);
}

static int sleep_by_poll(void)
{
	return poll(NULL, 0, 150);
}

static int sleep_by_futex(void)
{
	int word = 0;
	struct timespec wanted = {.tv_nsec = 150 * MILLISECOND};
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &wanted) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

/* Being stopped and continued is no interruption: the call goes on, and with the time that was left. */
static void sleeping_over_stops(int (*sleeper)(void))
{
	pid_t pid = spawn();
	if (pid == 0) {
		uint64_t start = nanoseconds();
		check(sleeper() == 0);
		check(nanoseconds() - start >= 150 * MILLISECOND);
		_exit(0);
	}
	for (int i = 0; i < 3; i++) {
		sleep_for(20 * MILLISECOND);
		check(kill(pid, SIGSTOP) == 0 && kill(pid, SIGCONT) == 0);
	}
	expect_exit(pid, 0);
}

/* The mask of ppoll and sigsuspend holds for the call only, and the signal that it lets through is delivered. */
static void masking(void)
{
	sigset_t one, none, now;
	sigemptyset(&none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	handle(SIGUSR1, 0);
	arrived = 0;
	check(sigprocmask(SIG_BLOCK, &one, NULL) == 0 && raise(SIGUSR1) == 0 && arrived == 0);
	struct timespec long_time = {.tv_sec = 10};
	check(ppoll(NULL, 0, &long_time, &none) == -1 && errno == EINTR && arrived == 1);
	check(raise(SIGUSR1) == 0 && arrived == 1);
	check(sigsuspend(&none) == -1 && errno == EINTR && arrived == 2);
	check(sigprocmask(SIG_UNBLOCK, &one, &now) == 0 && sigismember(&now, SIGUSR1));
}

/* ---- timers ---- */

static void interval_timers(void)
{
	handle(SIGALRM, SA_RESTART);
	handle(SIGPROF, SA_RESTART);
	struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0}}, seen;
	int kinds[] = {ITIMER_REAL, ITIMER_PROF};
	for (int i = 0; i < 2; i++) {
		arrived = 0;
		check(setitimer(kinds[i], &often, NULL) == 0);
		while (arrived < 5)
			relax();
		check(getitimer(kinds[i], &seen) == 0 && seen.it_interval.tv_usec == 5000);
		check(setitimer(kinds[i], &never, NULL) == 0);
	}
	/* A sleeping program uses no CPU time. */
	arrived = 0;
	struct itimerval later = {.it_value.tv_usec = 40000};
	check(setitimer(ITIMER_PROF, &later, NULL) == 0);
	sleep_for(80 * MILLISECOND);
	check(setitimer(ITIMER_PROF, &never, &seen) == 0 && arrived == 0 && seen.it_value.tv_usec > 0);
	check(alarm(100) == 0 && alarm(0) >= 99);
}

static void posix_timers(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 77};
	timer_t timer;
	check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	struct itimerspec often = {{.tv_nsec = 4 * MILLISECOND}, {.tv_nsec = 4 * MILLISECOND}}, never = {{0}};
	check(timer_settime(timer, 0, &often, NULL) == 0);
	sleep_for(50 * MILLISECOND);
	siginfo_t information;
	check(sigwaitinfo(&set, &information) == SIGRTMIN);
	check(timer_getoverrun(timer) == information.si_overrun);
	check(timer_settime(timer, 0, &never, NULL) == 0);
	check(information.si_code == SI_TIMER && information.si_value.sival_int == 77);
	/* Twelve expiries or more by then, one signal: the others are its overrun. */
	check(information.si_overrun >= 10);
	check(timer_delete(timer) == 0);
	check(timer_delete(timer) == -1 && errno == EINVAL);
	struct timespec nothing = {0};
	while (sigtimedwait(&set, NULL, &nothing) > 0)
		;
	check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

/* Hundreds of timers that expire all the time, with signals that nobody takes: the machine must go on all the same. */
static void many_timers(void)
{
	enum { TIMERS = 300 };
	timer_t timers[TIMERS];
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	signal(SIGRTMIN, SIG_IGN);
	struct itimerspec always = {{.tv_nsec = 1}, {.tv_nsec = 1}};
	for (int i = 0; i < TIMERS; i++) {
		struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + i % 2};
		check(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0);
		check(timer_settime(timers[i], 0, &always, NULL) == 0);
	}
	sleep_for(20 * MILLISECOND);
	siginfo_t information;
	check(sigwaitinfo(&set, &information) == SIGRTMIN + 1);
	check(information.si_overrun > 1000);
	for (int i = 0; i < TIMERS; i++)
		check(timer_delete(timers[i]) == 0);
	struct timespec nothing = {0};
	while (sigtimedwait(&set, NULL, &nothing) > 0)
		;
	check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	signal(SIGRTMIN, SIG_DFL);
}

/* ---- futex operations that libc seldom uses ---- */

static int words[3];

static long futex(int *word, int operation, int value, long fourth, int *other, int third)
{
	return syscall(SYS_futex, word, operation, value, fourth, other, third);
}

static void *wait_for_bit(void *bit)
{
	check(futex(&words[0], FUTEX_WAIT_BITSET, 0, 0, NULL, (int)(long)bit) == 0);
	return NULL;
}

static void futex_operations(void)
{
	pthread_t threads[4];
	memset(words, 0, sizeof words);
	for (long i = 0; i < 4; i++)
		check(pthread_create(&threads[i], NULL, wait_for_bit, (void *)(1L << i)) == 0);
	/* The third alone waits for bit 2. It may not have got there yet. */
	while (futex(&words[0], FUTEX_WAKE_BITSET, 9, 0, NULL, 4) == 0)
		sleep_for(MILLISECOND);
	check(pthread_join(threads[2], NULL) == 0);
	check(futex(&words[0], FUTEX_CMP_REQUEUE, 1, 1, &words[1], 5) == -1 && errno == EAGAIN);
	/* Move all three to the second word without waking any. */
	for (int moved = 0; moved < 3; sleep_for(MILLISECOND))
		moved += futex(&words[0], FUTEX_CMP_REQUEUE, 0, 9, &words[1], 0);
	check(futex(&words[0], FUTEX_WAKE, 9, 0, NULL, 0) == 0);
	check(futex(&words[1], FUTEX_WAKE, 1, 0, NULL, 0) == 1);
	words[2] = 5;
	int add_if_five = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5);
	check(futex(&words[2], FUTEX_WAKE_OP, 1, 9, &words[2], add_if_five) == 0 && words[2] == 8);
	words[2] = 5;
	check(futex(&words[1], FUTEX_WAKE_OP, 9, 1, &words[2], add_if_five) == 2 && words[2] == 8);
	for (int i = 0; i < 4; i++)
		check(i == 2 || pthread_join(threads[i], NULL) == 0);

	struct timespec wanted = {.tv_nsec = 10 * MILLISECOND}, wrong = {.tv_nsec = -1};
	check(futex(&words[0], FUTEX_WAIT, 0, (long)&wanted, NULL, 0) == -1 && errno == ETIMEDOUT);
	check(futex(&words[0], FUTEX_WAIT, 1, (long)&wanted, NULL, 0) == -1 && errno == EAGAIN);
	check(futex(&words[0], FUTEX_WAIT, 0, (long)&wrong, NULL, 0) == -1 && errno == EINVAL);
	check(futex((int *)8, FUTEX_WAIT, 1, 0, NULL, 0) == -1 && errno == EFAULT);
	check(futex((int *)((char *)words + 1), FUTEX_WAKE, 1, 0, NULL, 0) == -1 && errno == EINVAL);
	check(futex(&words[0], FUTEX_WAIT_BITSET, 0, 0, NULL, 0) == -1 && errno == EINVAL);
}

/* ---- the end of threads and processes ---- */

static void *pausing(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

static void *replacing(void *nothing)
{
	sleep_for(10 * MILLISECOND);
	char *const arguments[] = {"replaced", "--replaced", NULL};
	execv("/proc/self/exe", arguments);
	_exit(99);
	return nothing;
}

static void *ending_all(void *nothing)
{
	sleep_for(10 * MILLISECOND);
	exit(9);
	return nothing;
}

static void *ending_later(void *nothing)
{
	sleep_for(30 * MILLISECOND);
	return nothing;
}

static void in_child_with_threads(void *(*body)(void *), int leader_ends, int code)
{
	pid_t pid = spawn();
	if (pid == 0) {
		pthread_t thread;
		if (!leader_ends)
			for (int i = 0; i < 3; i++)
				check(pthread_create(&thread, NULL, pausing, NULL) == 0);
		check(pthread_create(&thread, NULL, body, NULL) == 0);
		if (leader_ends)
			pthread_exit(NULL);
		pausing(NULL);
	}
	expect_exit(pid, code);
}

static void ends(void)
{
	/* The thread that replaces the program takes over the process's id, which the new program checks. */
	in_child_with_threads(replacing, 0, 23);
	in_child_with_threads(ending_all, 0, 9);
	in_child_with_threads(ending_later, 1, 0);

	check(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	pid_t pid = spawn();
	if (pid == 0) {
		if (spawn() == 0) {
			sleep_for(20 * MILLISECOND);
			_exit(5);
		}
		_exit(4);
	}
	expect_exit(pid, 4);
	int status;
	check(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 5);
	check(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);

	/* A report that leaves the child as it is, then one that takes it. */
	siginfo_t information = {0};
	pid = spawn_pausing();
	check(setpgid(pid, 0) == 0 && getpgid(pid) == pid);
	check(waitid(P_PGID, pid, &information, WEXITED | WNOHANG) == 0 && information.si_pid == 0);
	check(kill(-pid, SIGUSR2) == 0);
	check(waitid(P_PID, pid, &information, WEXITED | WNOWAIT) == 0);
	check(information.si_code == CLD_KILLED && information.si_status == SIGUSR2);
	check(waitid(P_ALL, 0, &information, WEXITED) == 0 && information.si_pid == pid);
	check(wait(NULL) == -1 && errno == ECHILD);
	signal(SIGCHLD, SIG_IGN);
	if (spawn() == 0)
		_exit(0);
	check(wait(NULL) == -1 && errno == ECHILD);
	signal(SIGCHLD, SIG_DFL);
}

/* ---- as many arguments as fit ---- */

static int replaced_with(int count, int length)
{
	pid_t pid = spawn();
	if (pid == 0) {
		struct rlimit large = {64 << 20, 64 << 20};
		check(setrlimit(RLIMIT_STACK, &large) == 0);
		char **arguments = calloc(count + 3, sizeof *arguments), *text = malloc(length + 1);
		check(arguments && text);
		memset(text, 'x', length);
		text[length] = 0;
		arguments[0] = "replaced";
		arguments[1] = "--count";
		for (int i = 0; i < count; i++)
			arguments[i + 2] = text;
		execv("/proc/self/exe", arguments);
		_exit(errno);
	}
	int status = status_of(pid, 0);
	check(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void arguments(void)
{
	check(replaced_with(3, 10) == 0);
	check(replaced_with(400000, 1) == 0);
	check(replaced_with(50, 120000) == 0);
	check(replaced_with(1, 131071) == 0);
	check(replaced_with(1, 131072) == E2BIG);
	check(replaced_with(60, 120000) == E2BIG);
}

/* Every argument of the same length, as `replaced_with` gave them. */
static int count_arguments(int argc, char **argv)
{
	for (int i = 3; i < argc; i++)
		if (strlen(argv[i]) != strlen(argv[2]) || argv[i][0] != 'x')
			return 99;
	return argv[argc] == NULL ? 0 : 98;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--count") == 0)
		return count_arguments(argc, argv);
	if (argc == 2 && strcmp(argv[1], "--replaced") == 0)
		return syscall(SYS_gettid) == getpid() ? 23 : 24;
	if (argc > 1)
		refuse("%s: no arguments are taken", argv[1]);
	stopping();
	interrupting();
	sleeping_over_stops(sleep_by_nanosleep);
	sleeping_over_stops(sleep_by_poll);
	sleeping_over_stops(sleep_by_futex);
	masking();
	interval_timers();
	posix_timers();
	many_timers();
	futex_operations();
	ends();
	arguments();
	puts("ok");
	return 0;
}
