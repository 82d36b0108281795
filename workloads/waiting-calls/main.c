/* Calls that wait for several things, and limits that end a program: futex_waitv, poll, epoll, signalfd, RLIMIT_NPROC and RLIMIT_CPU, timers whose
 * signal is ignored or that expire without end, and who may signal the first process or set another's limits. Each part runs in a child of its own. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
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

/* Many threads that each wait for many words, all of them one word. */
#define CROWD 520
#define MOST_WORDS 128
static uint32_t meeting_place;

static void *join_crowd(void *unused)
{
	static __thread struct word waited[MOST_WORDS];
	for (int at = 0; at < MOST_WORDS; at++)
		waited[at] = (struct word){0, (uintptr_t)&meeting_place, 2 | FUTEX_PRIVATE_FLAG, 0};
	check(wait_for_any(waited, MOST_WORDS, NULL) >= 0 || errno == EAGAIN);
	return unused;
}

static void crowd(void)
{
	static pthread_t threads[CROWD];
	pthread_attr_t small;
	check(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
	for (int at = 0; at < CROWD; at++)
		check(pthread_create(&threads[at], &small, join_crowd, NULL) == 0);
	/* Until all of them wait, or nearly. */
	usleep(500000);
	__atomic_store_n(&meeting_place, 1, __ATOMIC_SEQ_CST);
	check(syscall(SYS_futex, &meeting_place, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) >= 0);
	for (int at = 0; at < CROWD; at++)
		check(pthread_join(threads[at], NULL) == 0);
}

/* Which clock a wait goes by can be said only with the times that are absolute. */
static void clock_of_a_word(void)
{
	struct timespec short_time = {0, 1000};
	EXPECT(ENOSYS, syscall(SYS_futex, &words[0], FUTEX_WAIT_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &short_time, NULL, 0));
	EXPECT(ETIMEDOUT, syscall(SYS_futex, &words[0], FUTEX_WAIT_PRIVATE, 0, &short_time, NULL, 0));
}

/* As many records as there may be descriptors. */
static void many_records(void)
{
	const size_t most = 1 << 20;
	struct rlimit limit = {most, most};
	struct pollfd *records = mmap(NULL, most * sizeof *records, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int tube[2];
	check(records != MAP_FAILED && setrlimit(RLIMIT_NOFILE, &limit) == 0 && pipe(tube) == 0);
	for (size_t at = 0; at < most; at++)
		records[at] = (struct pollfd){.fd = -1, .events = POLLIN, .revents = 7};
	check(poll(records, most, 0) == 0 && records[0].revents == 0 && records[most - 1].revents == 0);
	records[5].fd = tube[0];
	records[most - 1].fd = tube[1];
	records[most - 1].events = POLLOUT;
	check(poll(records, most, -1) == 1 && records[most - 1].revents == POLLOUT && records[5].revents == 0);
	records[most - 2].fd = 99;
	check(poll(records, most, -1) == 2 && records[most - 2].revents == POLLNVAL);
	EXPECT(EINVAL, poll(records, most + 1, 0));
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

/* A timer expires again and again while an epoll that watches it is changed and asked. */
static void changed_while_it_expires(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), several = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET}, found;
	struct itimerspec soon = {.it_value = {0, 1000}};
	check(timer >= 0 && several >= 0 && epoll_ctl(several, EPOLL_CTL_ADD, timer, &event) == 0);
	for (int round = 0; round < 20000; round++) {
		soon.it_value.tv_nsec = 1000 + round % 64 * 250;
		check(timerfd_settime(timer, 0, &soon, NULL) == 0);
		for (int again = 0; again < 8; again++)
			check(epoll_ctl(several, EPOLL_CTL_MOD, timer, &event) == 0 && epoll_wait(several, &found, 1, 0) >= 0);
	}
}

/* The next expiry but one is later than any clock goes. */
static void timer_of_a_long_life(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec rare = {.it_value = {0, 1}, .it_interval = {1L << 62, 0}};
	uint64_t count;
	check(timer >= 0 && timerfd_settime(timer, 0, &rare, NULL) == 0);
	usleep(10000);
	check(read(timer, &count, sizeof count) == sizeof count && count == 1);
	EXPECT(EAGAIN, read(timer, &count, sizeof count));
}

/* A timer that was to expire a thousand million times by now. */
static void countless_expiries(void)
{
	sigset_t set = blocked(SIGUSR1, SIGUSR1);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec ever = {.it_value = {0, 1}, .it_interval = {0, 1}}, never = {{0, 0}, {0, 0}};
	struct timespec now = {0, 0};
	siginfo_t taken;
	timer_t timer;
	/* There are more of them than a count can say. */
	while (now.tv_sec < 3) {
		usleep(10000);
		check(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	}
	check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, TIMER_ABSTIME, &ever, NULL) == 0);
	check(sigwaitinfo(&set, &taken) == SIGUSR1 && taken.si_overrun == INT_MAX);
	check(timer_getoverrun(timer) == INT_MAX && timer_settime(timer, 0, &never, NULL) == 0);
}

/* Another's limits are for who is the same user and group in all respects, or has the privilege. */
static void limits_of_others(void)
{
	struct rlimit low = {1000, 1000}, old;
	int hold[2];
	check(pipe(hold) == 0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		char end;
		close(hold[1]);
		_exit(read(hold[0], &end, 1) != 0);
	}
	check(prlimit(child, RLIMIT_SIGPENDING, &low, &old) == 0 && prlimit(child, RLIMIT_SIGPENDING, NULL, &old) == 0 && old.rlim_cur == 1000);
	EXPECT(EINVAL, prlimit(child, 99, NULL, &old));
	EXPECT(EFAULT, syscall(SYS_prlimit64, 0x3fffffff, RLIMIT_CORE, 8L, NULL));
	EXPECT(ESRCH, prlimit(0x3fffffff, 99, NULL, &old));
	check(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	EXPECT(EPERM, prlimit(child, RLIMIT_SIGPENDING, &low, NULL));
	EXPECT(EPERM, prlimit(child, RLIMIT_SIGPENDING, NULL, &old));
	EXPECT(EPERM, prlimit(child, 99, NULL, &old));
	check(prlimit(getpid(), RLIMIT_CORE, NULL, &old) == 0);
	check(close(hold[1]) == 0 && waitpid(child, NULL, 0) == child);
}

/* A limit of CPU time that is set when the process has ended is for nobody. */
static void limit_of_the_dead(void)
{
	struct rlimit short_time = {1, 2};
	for (int round = 0; round < 20; round++) {
		siginfo_t told;
		pid_t child = fork();
		check(child >= 0);
		if (child == 0)
			_exit(0);
		check(waitid(P_PID, child, &told, WEXITED | WNOWAIT) == 0 && prlimit(child, RLIMIT_CPU, &short_time, NULL) == 0);
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
	RUN(crowd);
	RUN(clock_of_a_word);
	RUN(many_records);
	RUN(changed_while_it_expires);
	RUN(timer_of_a_long_life);
	RUN(countless_expiries);
	RUN(limits_of_others);
	RUN(limit_of_the_dead);
	RUN(signal_file);
	RUN(signal_file_waits);
	RUN(most_processes);
	RUN(processor_time);
	RUN(ignored_timer);
	RUN(first_process);
	puts("ok");
	return 0;
}
