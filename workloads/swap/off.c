/* What may happen while a disk is taken out of swap: others look, others ask for it too, signals come, and memory runs out. */
#include "swap.h"
#include <signal.h>
#include <sys/time.h>

/* What one process has on the disk, in pages; and how often each thing is tried. */
enum { EACH = 1500, CHILDREN = 4, TRIES = 8 };

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
	(void)signal;
	alarms++;
}

/* A row of /proc/swaps for the disk: how many pages are used, or -1 if there is none. */
static long used_now(void)
{
	char text[1024] = {0}, path[64], type[64];
	int file = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	check(file >= 0 && read(file, text, sizeof text - 1) > 0 && close(file) == 0);
	long size, taken;
	if (sscanf(strchr(text, '\n'), "%63s %63s %ld %ld", path, type, &size, &taken) != 4)
		return -1;
	check(strcmp(path, DISK) == 0);
	return taken / 4;
}

static void page_out(unsigned char *memory, long pages)
{
	for (int tries = 0; tries < 100 && status("VmSwap") < pages * 9 / 10; tries++)
		check(madvise(memory, pages * PAGE, MADV_PAGEOUT) == 0);
	check(status("VmSwap") >= pages * 9 / 10);
}

/* A process that has so many pages on the disk, and answers bytes: one that is not 0 has them go once more, and at a 0 it looks at all of them and ends. */
struct holder {
	pid_t process;
	int to, from;
};

static struct holder hold(long pages)
{
	int to[2], from[2];
	check(pipe(to) == 0 && pipe(from) == 0);
	struct holder holder = {fork(), to[1], from[0]};
	check(holder.process >= 0);
	if (holder.process == 0) {
		unsigned char *memory = memory_of(pages);
		char byte = 0;
		for (long page = 0; page < pages; page++)
			fill_page(memory + page * PAGE, page, 1);
		page_out(memory, pages);
		check(write(from[1], &byte, 1) == 1);
		while (read(to[0], &byte, 1) == 1 && byte) {
			page_out(memory, pages);
			check(write(from[1], &byte, 1) == 1);
		}
		for (long page = 0; page < pages; page++)
			expect_page(memory + page * PAGE, page, 1);
		_exit(0);
	}
	check(close(to[0]) == 0 && close(from[1]) == 0);
	char byte;
	check(read(holder.from, &byte, 1) == 1);
	return holder;
}

/* It has all its pages go once more. */
static void again(const struct holder *holder)
{
	char byte = 1;
	check(write(holder->to, &byte, 1) == 1 && read(holder->from, &byte, 1) == 1);
}

static void let_go(const struct holder *holder)
{
	int ended;
	char byte = 0;
	check(write(holder->to, &byte, 1) == 1);
	check(waitpid(holder->process, &ended, 0) == holder->process);
	check(close(holder->to) == 0 && close(holder->from) == 0);
	if (ended != 0)
		fail("who had pages on the disk ended with %#x", ended);
}

/* While one process takes it out of use, its row stays and its pages become fewer; nobody else can, or take it into use. */
static void others_go_on_meanwhile(void)
{
	struct holder holder = hold(EACH * CHILDREN);
	long between = 0, full = used_now();
	check(full > 0);
	for (int tries = 0; tries < TRIES && between == 0; tries++) {
		pid_t child = fork();
		check(child >= 0);
		if (child == 0) {
			check(swapoff(DISK) == 0);
			_exit(0);
		}
		int ended;
		while (waitpid(child, &ended, WNOHANG) == 0) {
			long before = used_now();
			int got = swapon(DISK, 0);
			/* It may be over by now. */
			if (got == 0)
				break;
			check(errno == EBUSY);
			long after = used_now();
			/* All that time the other was at work. */
			if (before < full && after > 0 && before > 0) {
				between++;
				check(swapoff(DISK) == -1 && errno == EINVAL);
			}
		}
		if (kill(child, 0) == 0)
			waitpid(child, &ended, 0);
		check(ended == 0);
		if (used_now() == -1)
			check(swapon(DISK, 0) == 0);
		again(&holder);
		full = used_now();
	}
	printf("between=%ld\n", between);
	check(between > 0);
	let_go(&holder);
}

/* A signal ends it, or comes too late; what is on the disk stays there, and the disk in use. */
static void signals_end_it(void)
{
	struct holder holders[CHILDREN];
	struct sigaction action = {.sa_handler = count_alarm};
	check(sigaction(SIGALRM, &action, NULL) == 0);
	for (int i = 0; i < CHILDREN; i++)
		holders[i] = hold(EACH);
	long ended_early = 0;
	for (int tries = 0; tries < TRIES; tries++) {
		struct itimerval soon = {.it_value = {.tv_usec = 500 + 500 * tries}};
		alarms = 0;
		check(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		if (swapoff(DISK) == 0) {
			check(swapon(DISK, 0) == 0);
		} else {
			check(errno == EINTR && alarms > 0);
			check(used_now() > 0);
			ended_early++;
		}
		for (int i = 0; i < CHILDREN; i++)
			again(&holders[i]);
	}
	printf("ended_early=%ld\n", ended_early);
	check(ended_early > 0);
	for (int i = 0; i < CHILDREN; i++)
		let_go(&holders[i]);
}

void off(void)
{
	make_swap(0);
	check(swapon(DISK, 0) == 0);
	others_go_on_meanwhile();
	signals_end_it();
	check(swapoff(DISK) == 0);
	check(used_now() == -1);
}

/* More is on the disk than memory has room for, and somebody uses his memory all the time. Whoever asks for the disk is told so or killed, and nobody else is. */
void off_without_room(long mebibytes)
{
	make_swap(0);
	check(swapon(DISK, 0) == 0);
	long pages = mebibytes * 256;
	volatile int *is_over = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(is_over != MAP_FAILED);
	pid_t users[2];
	for (int self = 0; self < 2; self++) {
		users[self] = fork();
		check(users[self] >= 0);
		if (users[self] == 0) {
			unsigned char *memory = memory_of(pages / 2);
			for (long page = 0; page < pages / 2; page++)
				fill_page(memory + page * PAGE, page, self);
			is_over[1 + self] = 1;
			do
				for (long page = 0; page < pages / 2; page++)
					expect_page(memory + page * PAGE, page, self);
			while (!*is_over);
			_exit(0);
		}
	}
	int ended, killed = 0;
	while (!is_over[1] || !is_over[2])
		usleep(10000);
	for (int tries = 0; tries < TRIES; tries++) {
		pid_t child = fork();
		check(child >= 0);
		if (child == 0)
			_exit(swapoff(DISK) == -1 && (errno == ENOMEM || errno == EINTR) ? 0 : 1);
		check(waitpid(child, &ended, 0) == child);
		if (ended != 0 && !(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL))
			fail("swapoff ended with %#x", ended);
		killed += ended != 0;
	}
	*is_over = 1;
	for (int self = 0; self < 2; self++) {
		check(waitpid(users[self], &ended, 0) == users[self]);
		if (ended != 0)
			fail("user %d ended with %#x", self, ended);
	}
	printf("killed=%d of %d\n", killed, TRIES);
	check(swapoff(DISK) == 0);
}
