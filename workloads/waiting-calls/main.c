/* Calls that wait for several things, and limits that end a program: futex_waitv, signalfd, RLIMIT_NPROC and RLIMIT_CPU, timers whose signal is
 * ignored, and who may signal the first process. Each part runs in a child of its own. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>

#define WORDS 5
#define NOBODY 65534
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct word {
	uint64_t value, address;
	uint32_t flags, reserved;
};
static uint32_t words[WORDS];

static void describe(struct word *waited)
{
	for (int at = 0; at < WORDS; at++)
		waited[at] = (struct word){0, (uintptr_t)&words[at], 2 | FUTEX_PRIVATE_FLAG, 0};
}

static long wait_for_any(struct word *waited, unsigned count, const struct timespec *until)
{
	return syscall(SYS_futex_waitv, waited, count, 0, until, CLOCK_MONOTONIC);
}

static void *wake_fourth(void *unused)
{
	/* Until the other waits: nobody else is to be woken. */
	while (syscall(SYS_futex, &words[3], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
		usleep(1000);
	return unused;
}

static void many_words(void)
{
	struct word waited[WORDS];
	pthread_t waker;
	describe(waited);
	check(pthread_create(&waker, NULL, wake_fourth, NULL) == 0);
	check(wait_for_any(waited, WORDS, NULL) == 3 && pthread_join(waker, NULL) == 0);
	/* Nobody is left in a queue. */
	for (int at = 0; at < WORDS; at++)
		check(syscall(SYS_futex, &words[at], FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0) == 0);
	struct timespec until;
	check(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
	EXPECT(ETIMEDOUT, wait_for_any(waited, WORDS, &until));
	waited[4].value = 1;
	EXPECT(EAGAIN, wait_for_any(waited, WORDS, NULL));
	EXPECT(EINVAL, wait_for_any(waited, 0, NULL));
	EXPECT(EINVAL, wait_for_any(waited, 129, NULL));
	EXPECT(EINVAL, syscall(SYS_futex_waitv, waited, 1, 1, NULL, 0));
	EXPECT(EINVAL, syscall(SYS_futex_waitv, waited, 1, 0, &until, CLOCK_BOOTTIME));
	EXPECT(EFAULT, wait_for_any((struct word *)8, 1, NULL));
	waited[0].flags = FUTEX_PRIVATE_FLAG;
	EXPECT(EINVAL, wait_for_any(waited, 1, NULL));
	describe(waited);
	waited[0].reserved = 1;
	EXPECT(EINVAL, wait_for_any(waited, 1, NULL));
	describe(waited);
	waited[0].address += 1;
	EXPECT(EINVAL, wait_for_any(waited, 1, NULL));
}

static void nothing(int signal)
{
	(void)signal;
}

static void interrupted_words(void)
{
	struct word waited[WORDS];
	struct sigaction action = {.sa_handler = nothing};
	describe(waited);
	check(sigaction(SIGALRM, &action, NULL) == 0);
	alarm(1);
	EXPECT(EINTR, wait_for_any(waited, WORDS, NULL));
}

static sigset_t blocked(int one, int other)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, one);
	sigaddset(&set, other);
	check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	return set;
}

static void signal_file(void)
{
	sigset_t set = blocked(SIGUSR1, SIGRTMIN);
	struct signalfd_siginfo taken[3];
	int file = signalfd(-1, &set, SFD_NONBLOCK);
	struct pollfd polled = {.fd = file, .events = POLLIN};
	check(file >= 0 && poll(&polled, 1, 0) == 0);
	EXPECT(EAGAIN, read(file, taken, sizeof taken));
	EXPECT(EINVAL, read(file, taken, sizeof *taken - 1));
	check(kill(getpid(), SIGUSR1) == 0 && sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 42}) == 0);
	check(poll(&polled, 1, 0) == 1 && read(file, taken, sizeof taken) == 2 * sizeof *taken);
	check(taken[0].ssi_signo == SIGUSR1 && taken[0].ssi_pid == (uint32_t)getpid() && taken[0].ssi_code == SI_USER);
	check(taken[1].ssi_signo == (uint32_t)SIGRTMIN && taken[1].ssi_int == 42 && taken[1].ssi_code == SI_QUEUE);
	sigset_t left;
	check(sigpending(&left) == 0 && !sigismember(&left, SIGUSR1) && poll(&polled, 1, 0) == 0);
	sigdelset(&set, SIGUSR1);
	check(signalfd(file, &set, 0) == file && kill(getpid(), SIGUSR1) == 0 && poll(&polled, 1, 0) == 0);
	EXPECT(EINVAL, signalfd(1, &set, 0));
	EXPECT(EBADF, signalfd(99, &set, 0));
	EXPECT(EINVAL, signalfd(-1, &set, 1));
	EXPECT(EINVAL, syscall(SYS_signalfd4, -1, &set, 4, 0));
}

/* A read and an epoll that wait until a child ends. */
static void signal_file_waits(void)
{
	sigset_t set = blocked(SIGCHLD, SIGCHLD);
	struct signalfd_siginfo taken;
	int file = signalfd(-1, &set, 0), several = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	check(file >= 0 && several >= 0 && epoll_ctl(several, EPOLL_CTL_ADD, file, &event) == 0);
	for (int round = 0; round < 2; round++) {
		pid_t child = fork();
		check(child >= 0);
		if (child == 0) {
			usleep(50000);
			_exit(3);
		}
		if (round)
			check(epoll_wait(several, &event, 1, 20000) == 1);
		check(read(file, &taken, sizeof taken) == sizeof taken && taken.ssi_signo == SIGCHLD);
		check(taken.ssi_pid == (uint32_t)child && taken.ssi_status == 3 && taken.ssi_code == CLD_EXITED);
		check(waitpid(child, NULL, 0) == child);
	}
}

/* A user other than root has so many processes and no more. */
static void most_processes(void)
{
	struct rlimit limit = {4, 4};
	check(setuid(4711) == 0 && setrlimit(RLIMIT_NPROC, &limit) == 0);
	int made = 0, hold[2];
	check(pipe(hold) == 0);
	for (pid_t child; made < 10 && (child = fork()) >= 0; made++)
		if (child == 0) {
			char end;
			close(hold[1]);
			_exit(read(hold[0], &end, 1) != 0);
		}
	check(errno == EAGAIN && made == 3 && close(hold[1]) == 0);
	while (made-- > 0)
		check(wait(NULL) > 0);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	check(child > 0 && waitpid(child, NULL, 0) == child);
}

static volatile sig_atomic_t warned;

static void warn(int signal)
{
	warned += signal == SIGXCPU;
}

/* At the soft limit a warning, at the hard one the end; a child has it from its parent. */
static void processor_time(void)
{
	int told[2], how;
	char mark = 0;
	check(pipe(told) == 0);
	struct rlimit limit = {1, 2};
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(setrlimit(RLIMIT_CPU, &limit) == 0 && signal(SIGXCPU, warn) != SIG_ERR);
		while (!warned)
			;
		check(write(told[1], "w", 1) == 1);
		for (;;)
			;
	}
	check(read(told[0], &mark, 1) == 1 && mark == 'w');
	check(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

/* Overruns are counted also of a signal that is ignored once it is taken. */
static void ignored_timer(void)
{
	sigset_t set = blocked(SIGCONT, SIGCONT);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	struct itimerspec often = {{0, 1000000}, {0, 1000000}}, never = {{0, 0}, {0, 0}};
	timer_t timer;
	check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &often, NULL) == 0);
	/* On an emulator in which CPUs take turns a CPU's timer may be late: some round is on time. */
	int overruns = 0;
	for (int round = 0; round < 20 && overruns < 20; round++) {
		usleep(60000);
		check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
		overruns = timer_getoverrun(timer);
		check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	}
	check(overruns >= 20 && timer_settime(timer, 0, &never, NULL) == 0);
}

/* Only root may signal the first process, and which signals it may be sent needs no privilege to know. */
static void first_process(void)
{
	check(kill(1, 0) == 0 && setuid(NOBODY) == 0);
	EXPECT(EPERM, kill(1, 0));
	EXPECT(EPERM, kill(1, SIGTERM));
	EXPECT(EPERM, sigqueue(1, 0, (union sigval){0}));
}

int main(void)
{
	RUN(many_words);
	RUN(interrupted_words);
	RUN(signal_file);
	RUN(signal_file_waits);
	RUN(most_processes);
	RUN(processor_time);
	RUN(ignored_timer);
	RUN(first_process);
	puts("ok");
	return 0;
}
