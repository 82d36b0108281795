/* Processes as files: pidfd_open, pidfd_send_signal, pidfd_getfd, CLONE_PIDFD, waitid(P_PIDFD), polling, and process_madvise. Each error
 * that the manual pages name, and what each call does. Passes on Linux 6.1 as it does here.
 *
 * One line says how many interrupts one process_madvise over several ranges caused: with all CPUs but one spinning in the program, one
 * for each of those here; Linux takes a round for each range.
 */
#include "../include/expected-errors.h"
#include "../include/large-pages.h"
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define MOST_THREADS 63

static void *const kernel_side = (void *)0xffff800000000000UL;

static int open_process(pid_t process, unsigned flags) { return syscall(SYS_pidfd_open, process, flags); }
static int send(int file, int number, siginfo_t *information, unsigned flags)
{
	return syscall(SYS_pidfd_send_signal, file, number, information, flags);
}
static int get(int file, int target, unsigned flags) { return syscall(SYS_pidfd_getfd, file, target, flags); }
static long advise(int file, const struct iovec *ranges, size_t count, int advice, unsigned flags)
{
	return syscall(SYS_process_madvise, file, ranges, count, advice, flags);
}

static int is_ready(int file, int milliseconds)
{
	struct pollfd wanted = { .fd = file, .events = POLLIN };
	int count = poll(&wanted, 1, milliseconds);
	check(count >= 0 && (count == 0 || wanted.revents == POLLIN));
	return count;
}

/* A child that waits for a byte or the end of what this returns, and then ends. */
static pid_t waiting_child(int *let_go)
{
	int ends[2];
	check(pipe(ends) == 0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		char byte;
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 1 ? byte : 0);
	}
	close(ends[0]);
	*let_go = ends[1];
	return child;
}

static void *sleep_for_ever(void *word)
{
	__atomic_store_n((pid_t *)word, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	pause();
	return NULL;
}

static void opening(void)
{
	EXPECT(EINVAL, open_process(0, 0));
	EXPECT(EINVAL, open_process(-1, 0));
	EXPECT(EINVAL, open_process(getpid(), 1));
	EXPECT(ESRCH, open_process(30000, 0));
	pid_t thread_id = 0;
	pthread_t thread;
	check(pthread_create(&thread, NULL, sleep_for_ever, &thread_id) == 0);
	while (!__atomic_load_n(&thread_id, __ATOMIC_ACQUIRE))
		sched_yield();
	EXPECT(EINVAL, open_process(thread_id, 0));
	int file = open_process(getpid(), 0), patient = open_process(getpid(), O_NONBLOCK);
	check(file >= 0 && fcntl(file, F_GETFD) == FD_CLOEXEC && !(fcntl(file, F_GETFL) & O_NONBLOCK));
	check(patient >= 0 && fcntl(patient, F_GETFL) & O_NONBLOCK);
	char byte;
	EXPECT(EINVAL, read(file, &byte, 1));
	EXPECT(EINVAL, write(file, &byte, 1));
	check(!is_ready(file, 0));
	char name[64], text[256];
	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", file);
	int facts = open(name, O_RDONLY);
	ssize_t length = read(facts, text, sizeof text - 1);
	check(length > 0);
	text[length] = 0;
	snprintf(name, sizeof name, "\nPid:\t%d\n", getpid());
	check(strstr(text, name));
	close(facts), close(file), close(patient);
}

static volatile int seen, seen_code, seen_value;

static void note(int number, siginfo_t *information, void *context)
{
	(void)context;
	seen = number, seen_code = information->si_code, seen_value = information->si_value.sival_int;
}

static void sending(void)
{
	struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	check(sigaction(SIGUSR1, &action, NULL) == 0);
	int file = open_process(getpid(), 0), let_go;
	EXPECT(EBADF, send(-1, SIGUSR1, NULL, 0));
	EXPECT(EBADF, send(1, SIGUSR1, NULL, 0));
	EXPECT(EINVAL, send(file, SIGUSR1, NULL, 1));
	EXPECT(EINVAL, send(-1, SIGUSR1, NULL, 1));
	EXPECT(EINVAL, send(file, 65, NULL, 0));
	EXPECT(EFAULT, send(file, SIGUSR1, (void *)8, 0));
	EXPECT(0, send(file, 0, NULL, 0));
	EXPECT(0, send(file, SIGUSR1, NULL, 0));
	check(seen == SIGUSR1 && seen_code == SI_USER);
	siginfo_t information = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	information.si_value.sival_int = 77;
	EXPECT(EINVAL, send(file, SIGUSR2, &information, 0));
	EXPECT(0, send(file, SIGUSR1, &information, 0));
	check(seen_code == SI_QUEUE && seen_value == 77);
	int directory = open("/proc/self", O_RDONLY | O_DIRECTORY);
	check(directory >= 0);
	seen = 0;
	EXPECT(0, send(directory, SIGUSR1, NULL, 0));
	check(seen == SIGUSR1);
	close(directory);
	directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	EXPECT(EBADF, send(directory, SIGUSR1, NULL, 0));
	close(directory), close(file);

	pid_t child = waiting_child(&let_go);
	file = open_process(child, 0);
	information.si_code = SI_USER;
	EXPECT(EPERM, send(file, SIGUSR1, &information, 0));
	information.si_code = SI_TKILL;
	EXPECT(EPERM, send(file, SIGUSR1, &information, 0));
	pid_t other = fork();
	check(other >= 0);
	if (other == 0) {
		check(setuid(SOMEBODY) == 0);
		EXPECT(EPERM, send(file, SIGUSR1, NULL, 0));
		EXPECT(EPERM, get(file, 0, 0));
		_exit(0);
	}
	int status;
	check(waitpid(other, &status, 0) == other && status == 0);
	EXPECT(0, send(file, SIGKILL, NULL, 0));
	check(is_ready(file, 10000));
	EXPECT(0, send(file, 0, NULL, 0));
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT(ESRCH, send(file, 0, NULL, 0));
	check(is_ready(file, 0));
	EXPECT(ESRCH, open_process(child, 0));
	close(file), close(let_go);
}

static void waiting(void)
{
	siginfo_t information;
	int let_go;
	pid_t child = waiting_child(&let_go);
	int file = open_process(child, 0), impatient = open_process(child, O_NONBLOCK), set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 5 };
	check(epoll_ctl(set, EPOLL_CTL_ADD, file, &event) == 0 && epoll_wait(set, &event, 1, 0) == 0);
	EXPECT(EINVAL, waitid(P_PIDFD, -1, &information, WEXITED));
	EXPECT(EBADF, waitid(P_PIDFD, 99, &information, WEXITED));
	EXPECT(EBADF, waitid(P_PIDFD, 1, &information, WEXITED));
	EXPECT(EAGAIN, waitid(P_PIDFD, impatient, &information, WEXITED));
	EXPECT(0, waitid(P_PIDFD, impatient, &information, WEXITED | WNOHANG));
	int own = open_process(getpid(), 0);
	EXPECT(ECHILD, waitid(P_PIDFD, own, &information, WEXITED));
	close(own);
	check(!is_ready(file, 10) && write(let_go, "\7", 1) == 1);
	check(epoll_wait(set, &event, 1, 10000) == 1 && event.events == EPOLLIN && event.data.u32 == 5);
	check(is_ready(file, 0) && is_ready(impatient, 0));
	EXPECT(0, waitid(P_PIDFD, impatient, &information, WEXITED | WNOWAIT));
	EXPECT(0, waitid(P_PIDFD, file, &information, WEXITED));
	check(information.si_pid == child && information.si_code == CLD_EXITED && information.si_status == 7);
	EXPECT(ECHILD, waitid(P_PIDFD, file, &information, WEXITED));
	close(file), close(impatient), close(set), close(let_go);
}

static long clone_three(struct clone_args *arguments) { return syscall(SYS_clone3, arguments, sizeof *arguments); }

static void cloning(void)
{
	int file = -1, status;
	struct clone_args wanted = { .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t)&file };
	struct clone_args wrong = wanted;
	wrong.pidfd = 8;
	EXPECT(EFAULT, clone_three(&wrong));
	wrong = wanted, wrong.flags |= CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, wrong.exit_signal = 0;
	EXPECT(EINVAL, clone_three(&wrong));
	wrong = wanted, wrong.flags |= CLONE_PARENT_SETTID, wrong.parent_tid = wrong.pidfd;
	EXPECT(EINVAL, clone_three(&wrong));
	EXPECT(EINVAL, syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &file, 0, 0));
	EXPECT(EINVAL, syscall(SYS_clone, CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, 0, &file, 0, 0));
	for (int form = 0; form < 2; form++) {
		file = -1;
		long child = form ? clone_three(&wanted) : syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &file, 0, 0);
		check(child >= 0);
		if (child == 0)
			_exit(fcntl(file, F_GETFD) == -1 ? 9 : 1); /* the parent's word is a copy here, and not set */
		check(file >= 0 && fcntl(file, F_GETFD) == FD_CLOEXEC && is_ready(file, 10000));
		check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
		EXPECT(ESRCH, send(file, 0, NULL, 0));
		close(file);
	}
	struct rlimit limit, none = { 0, 1024 };
	check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none.rlim_max = limit.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &none) == 0);
	EXPECT(EMFILE, clone_three(&wanted));
	EXPECT(EMFILE, open_process(getpid(), 0));
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void getting(void)
{
	int let_go, ends[2];
	check(pipe(ends) == 0);
	pid_t child = waiting_child(&let_go);
	int file = open_process(child, 0);
	EXPECT(EBADF, get(-1, 0, 0));
	EXPECT(EBADF, get(1, 0, 0));
	EXPECT(EBADF, get(file, -1, 0));
	EXPECT(EBADF, get(file, 500, 0));
	EXPECT(EINVAL, get(file, 0, 1));
	int copy = get(file, ends[1], 0);
	check(copy >= 0 && copy != ends[1] && fcntl(copy, F_GETFD) == FD_CLOEXEC);
	char byte;
	check(write(copy, "x", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x');
	close(let_go), close(copy), close(ends[0]), close(ends[1]);
	check(waitpid(child, NULL, 0) == child);
	EXPECT(ESRCH, get(file, 0, 0));
	close(file);
}

/* Places of one large page each, no two side by side, each stored to page by page. */
#define PLACES 6
static char *place[PLACES];
static struct iovec ranges[PLACES];

static void make_places(void)
{
	for (int i = 0; i < PLACES; i++) {
		place[i] = map_aligned(LARGE, PROT_READ | PROT_WRITE);
		ranges[i] = (struct iovec){ place[i], LARGE };
		for (size_t page = 0; page < LARGE; page += 16 * PAGE)
			place[i][page] = i + 1;
	}
}

static void drop_places(void)
{
	for (int i = 0; i < PLACES; i++)
		check(munmap(place[i] - LARGE, 3 * LARGE) == 0);
}

static void advising(void)
{
	int own = open_process(getpid(), 0), let_go;
	make_places();
	char *hole = map_aligned(LARGE, PROT_READ);
	pid_t child = waiting_child(&let_go);
	int file = open_process(child, 0);
	struct iovec bad[4] = { { hole, PAGE }, { hole + PAGE, 2 * PAGE }, { hole + 1, PAGE }, { hole, PAGE } };
	EXPECT(EINVAL, advise(own, ranges, 1, MADV_COLD, 1));
	EXPECT(EINVAL, advise(own, ranges, 1025, MADV_COLD, 0));
	EXPECT(EFAULT, advise(own, (void *)8, 1, MADV_COLD, 0));
	EXPECT(EFAULT, advise(-1, (void *)8, 1, MADV_COLD, 0));
	EXPECT(EBADF, advise(-1, ranges, 1, MADV_COLD, 0));
	EXPECT(EBADF, advise(1, ranges, 1, MADV_COLD, 0));
	EXPECT(EINVAL, advise(own, ranges, 1, MADV_DONTNEED, 0));
	EXPECT(EINVAL, advise(own, ranges, 1, MADV_NORMAL, 0));
	EXPECT(EINVAL, advise(own, ranges, 1, 77, 0));
	EXPECT(EINVAL, advise(own, bad + 2, 1, MADV_COLD, 0));
	check(advise(own, NULL, 0, MADV_COLD, 0) == 0);
	check(advise(own, bad, 2, MADV_COLD, 0) == 3 * PAGE && advise(own, bad, 4, MADV_PAGEOUT, 0) == 3 * PAGE);
	check(advise(file, bad, 4, MADV_WILLNEED, 0) == 3 * PAGE);
	struct iovec beyond = { kernel_side, PAGE }, negative = { hole, -1UL }, gone = { (void *)0x100000, PAGE };
	EXPECT(EFAULT, advise(own, &beyond, 1, MADV_COLD, 0));
	EXPECT(EINVAL, advise(own, &negative, 1, MADV_COLD, 0));
	EXPECT(ENOMEM, advise(own, &gone, 1, MADV_COLD, 0));
	struct iovec locked = { hole, PAGE };
	check(mlock(hole, PAGE) == 0);
	EXPECT(EINVAL, advise(own, &locked, 1, MADV_COLD, 0));
	EXPECT(EINVAL, advise(own, &locked, 1, MADV_PAGEOUT, 0));
	check(munlock(hole, PAGE) == 0);
	/* Of several thousand ranges as many as a call may name. */
	static struct iovec many[1024];
	for (int i = 0; i < 1024; i++)
		many[i] = (struct iovec){ hole, PAGE };
	check(advise(own, many, 1024, MADV_COLD, 0) == 1024 * PAGE);

	/* The child's memory changes, and not ours. */
	check(advise(file, ranges, 2, MADV_WILLNEED, 0) == 2 * (long)LARGE);
	pid_t other = fork();
	check(other >= 0);
	if (other == 0) {
		int self = open_process(getpid(), 0);
		check(setuid(SOMEBODY) == 0);
		EXPECT(EPERM, advise(self, ranges, 1, MADV_COLD, 0));
		EXPECT(EACCES, advise(file, ranges, 1, MADV_COLD, 0));
		EXPECT(EINVAL, advise(file, ranges, 1, MADV_DONTNEED, 0));
		_exit(0);
	}
	int status;
	check(waitpid(other, &status, 0) == other && status == 0);
	check(write(let_go, "", 1) == 1 && is_ready(file, 10000));
	EXPECT(ESRCH, advise(file, ranges, 1, MADV_COLD, 0));
	check(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(ESRCH, advise(file, ranges, 1, MADV_COLD, 0));
	EXPECT(ESRCH, advise(file, ranges, 1, MADV_DONTNEED, 0));
	close(file), close(own), close(let_go);
	munmap(hole - LARGE, 3 * LARGE);
	drop_places();
}

static int cpus[MOST_THREADS + 1], arrived, over;

static void *spin(void *argument)
{
	bind_to(cpus[(long)argument]);
	for (int i = 0; i < PLACES; i++)
		for (size_t page = 0; page < LARGE; page += 16 * PAGE)
			(void)*(volatile char *)&place[i][page];
	__atomic_add_fetch(&arrived, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		relax();
	return NULL;
}

/* All places of one call, while every other CPU spins in this program. */
static void collapsing(void)
{
	pthread_t threads[MOST_THREADS];
	int others = allowed_cpus(cpus, MOST_THREADS + 1) - 1, file = open_process(getpid(), 0);
	make_places();
	bind_to(cpus[0]);
	for (long i = 0; i < others; i++)
		check(pthread_create(&threads[i], NULL, spin, (void *)(i + 1)) == 0);
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < others)
		usleep(100);
	long before = interrupt_row("TLB:");
	check(advise(file, ranges, PLACES, MADV_COLLAPSE, 0) == PLACES * (long)LARGE);
	long after = interrupt_row("TLB:");
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < others; i++)
		check(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < PLACES; i++) {
		check(large_kilobytes(place[i], place[i] + LARGE) == (long)LARGE / 1024);
		for (size_t page = 0; page < LARGE; page += PAGE)
			check(place[i][page] == (page % (16 * PAGE) ? 0 : i + 1));
	}
	printf("ranges=%d threads=%d interrupts=%ld\n", PLACES, others, before < 0 ? -1 : after - before);
	drop_places();
	close(file);
}

int main(void)
{
	opening();
	sending();
	waiting();
	cloning();
	getting();
	advising();
	collapsing();
	puts("ok");
	return 0;
}
