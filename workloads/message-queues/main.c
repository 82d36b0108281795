/* POSIX message queues: order, limits, waiting, news of a message, names and rights, as the manual pages say. Each part runs in a child of its own.
 * Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define NAME "/ceasefire-queue"
#define NOBODY 65534

static mqd_t fresh_queue(int flags, long messages, long bytes)
{
	struct mq_attr attributes = {.mq_maxmsg = messages, .mq_msgsize = bytes};
	mq_unlink(NAME);
	mqd_t queue = mq_open(NAME, O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attributes);
	check(queue >= 0);
	return queue;
}

static void order(void)
{
	mqd_t queue = fresh_queue(0, 4, 8);
	char text[8];
	unsigned priority;
	struct mq_attr found;
	struct pollfd polled = {.fd = queue, .events = POLLIN | POLLOUT};
	check(poll(&polled, 1, 0) == 1 && polled.revents == POLLOUT);
	check(mq_send(queue, "low", 3, 1) == 0 && mq_send(queue, "first", 5, 7) == 0);
	check(mq_send(queue, "second", 6, 7) == 0 && mq_send(queue, "", 0, 0) == 0);
	check(mq_getattr(queue, &found) == 0 && found.mq_curmsgs == 4 && found.mq_maxmsg == 4 && found.mq_msgsize == 8 && found.mq_flags == 0);
	check(poll(&polled, 1, 0) == 1 && polled.revents == POLLIN);
	check(mq_receive(queue, text, 8, &priority) == 5 && priority == 7 && memcmp(text, "first", 5) == 0);
	check(mq_receive(queue, text, 8, NULL) == 6 && memcmp(text, "second", 6) == 0);
	check(mq_receive(queue, text, 8, &priority) == 3 && priority == 1);
	check(mq_receive(queue, text, 8, &priority) == 0 && priority == 0);
}

static void errors(void)
{
	mqd_t queue = fresh_queue(O_NONBLOCK, 1, 8), reader = mq_open(NAME, O_RDONLY), writer = mq_open(NAME, O_WRONLY);
	char text[8];
	struct mq_attr wrong = {.mq_maxmsg = 0, .mq_msgsize = 8}, blocking = {0}, before;
	struct timespec past = {1, 0}, senseless = {1, -1};
	EXPECT(EAGAIN, mq_receive(queue, text, 8, NULL));
	EXPECT(EMSGSIZE, mq_receive(queue, text, 7, NULL));
	EXPECT(EMSGSIZE, mq_send(queue, "123456789", 9, 0));
	EXPECT(EINVAL, mq_send(queue, "1", 1, 32768));
	EXPECT(EBADF, mq_send(reader, "1", 1, 0));
	EXPECT(EBADF, mq_receive(writer, text, 8, NULL));
	EXPECT(EBADF, mq_send(1, "1", 1, 0));
	check(mq_send(queue, "1", 1, 0) == 0);
	EXPECT(EAGAIN, mq_send(queue, "2", 1, 0));
	EXPECT(ETIMEDOUT, mq_timedsend(writer, "2", 1, 0, &past));
	EXPECT(EINVAL, mq_timedsend(writer, "2", 1, 0, &senseless));
	check(mq_setattr(queue, &blocking, &before) == 0 && before.mq_flags == O_NONBLOCK);
	EXPECT(ETIMEDOUT, mq_timedsend(queue, "2", 1, 0, &past));
	blocking.mq_flags = O_APPEND;
	EXPECT(EINVAL, mq_setattr(queue, &blocking, NULL));
	EXPECT(EEXIST, mq_open(NAME, O_CREAT | O_EXCL | O_RDWR, 0600, NULL));
	EXPECT(ENOENT, mq_open("/no-such-queue", O_RDWR));
	EXPECT(ENOENT, mq_unlink("/no-such-queue"));
	EXPECT(EACCES, mq_open("/in/folder", O_RDWR));
	EXPECT(EINVAL, mq_open("/wrong", O_CREAT | O_RDWR, 0600, &wrong));
	char longest[NAME_MAX + 3];
	memset(longest, 'n', sizeof longest);
	longest[0] = '/';
	longest[NAME_MAX + 2] = 0;
	EXPECT(ENAMETOOLONG, mq_open(longest, O_CREAT | O_RDWR, 0600, NULL));
	/* It stays for those who have it. */
	check(mq_unlink(NAME) == 0 && mq_receive(queue, text, 8, NULL) == 1);
}

static void waiting(void)
{
	mqd_t queue = fresh_queue(0, 1, 8);
	char text[8];
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		usleep(50000);
		/* The second waits until the first was taken. */
		check(mq_send(queue, "a", 1, 0) == 0 && mq_send(queue, "b", 1, 0) == 0);
		_exit(0);
	}
	int how;
	check(mq_receive(queue, text, 8, NULL) == 1 && text[0] == 'a');
	check(mq_receive(queue, text, 8, NULL) == 1 && text[0] == 'b');
	check(waitpid(child, &how, 0) == child && how == 0);
}

static void nothing(int signal)
{
	(void)signal;
}

static void interrupted(void)
{
	mqd_t queue = fresh_queue(0, 1, 8);
	char text[8];
	struct sigaction action = {.sa_handler = nothing};
	check(sigaction(SIGALRM, &action, NULL) == 0);
	alarm(1);
	EXPECT(EINTR, mq_receive(queue, text, 8, NULL));
}

/* Of the next message that meets an empty queue, once. */
static void news(void)
{
	mqd_t queue = fresh_queue(O_NONBLOCK, 4, 8);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77};
	struct timespec none = {0, 0};
	siginfo_t heard;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	check(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && mq_notify(queue, &event) == 0);
	EXPECT(EBUSY, mq_notify(queue, &event));
	check(mq_send(queue, "x", 1, 0) == 0 && sigtimedwait(&set, &heard, &none) == SIGUSR1);
	check(heard.si_code == SI_MESGQ && heard.si_value.sival_int == 77 && heard.si_pid == getpid());
	check(mq_send(queue, "y", 1, 0) == 0);
	EXPECT(EAGAIN, sigtimedwait(&set, &heard, &none));
	/* Not of one that meets others, and not if it was taken back. */
	check(mq_notify(queue, &event) == 0 && mq_send(queue, "z", 1, 0) == 0);
	EXPECT(EAGAIN, sigtimedwait(&set, &heard, &none));
	check(mq_notify(queue, NULL) == 0 && mq_notify(queue, &event) == 0);
	/* Who closes a descriptor of it hears no more. */
	check(close(dup(queue)) == 0 && mq_notify(queue, &event) == 0);
}

/* A registration ends with the program that made it, and with its process. */
static void news_of_the_gone(const char *program)
{
	mqd_t queue = fresh_queue(O_NONBLOCK, 4, 8);
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	int hold[2];
	siginfo_t told;
	char end;
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(mq_notify(queue, &event) == 0);
		_exit(0);
	}
	/* As soon as it has ended, waited for or not. */
	check(waitid(P_PID, child, &told, WEXITED | WNOWAIT) == 0 && mq_notify(queue, &event) == 0 && mq_notify(queue, NULL) == 0);
	check(waitpid(child, NULL, 0) == child && pipe(hold) == 0);
	child = fork();
	check(child >= 0);
	if (child == 0) {
		check(mq_notify(queue, &event) == 0 && dup2(hold[1], 1) == 1);
		close(hold[0]), close(hold[1]);
		execl(program, program, "--say-and-wait", NULL);
		_exit(1);
	}
	close(hold[1]);
	check(read(hold[0], &end, 1) == 1);
	/* The descriptor was closed when the new program began. */
	check(mq_notify(queue, &event) == 0 && mq_notify(queue, NULL) == 0);
	check(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

static const char *own_name;

static void forgotten(void)
{
	news_of_the_gone(own_name);
}

/* Larger than most that is allocated in one piece. */
static void large_message(void)
{
	const size_t size = 9 << 20;
	struct rlimit limit = {64 << 20, 64 << 20};
	check(setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
	char *message = fresh(size / PAGE, READ_WRITE, MAP_PRIVATE), *copy = fresh(size / PAGE, READ_WRITE, MAP_PRIVATE);
	mqd_t queue = fresh_queue(O_NONBLOCK, 1, size);
	for (size_t at = 0; at < size; at += 1000)
		message[at] = at / 1000;
	check(mq_send(queue, message, size - 1, 0) == 0 && mq_receive(queue, copy, size, NULL) == (ssize_t)size - 1);
	check(memcmp(message, copy, size) == 0);
}

/* What has no name any more still counts, until nobody has it open. */
static void without_names(void)
{
	struct rlimit limit = {100000, 100000};
	struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8000};
	check(mq_unlink(NAME) == 0 || errno == ENOENT);
	check(setgid(4712) == 0 && setuid(4712) == 0 && setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
	mqd_t queue = mq_open(NAME, O_CREAT | O_RDWR, 0600, &attributes);
	check(queue >= 0 && mq_unlink(NAME) == 0);
	EXPECT(EMFILE, mq_open(NAME, O_CREAT | O_RDWR, 0600, &attributes));
	check(mq_close(queue) == 0);
	queue = mq_open(NAME, O_CREAT | O_RDWR, 0600, &attributes);
	check(queue >= 0 && mq_unlink(NAME) == 0);
}

/* A queue is not made for whom it has no descriptor. */
static void no_descriptor(void)
{
	struct rlimit limit = {8, 8};
	mq_unlink(NAME);
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while (dup(0) >= 0)
		;
	EXPECT(EMFILE, mq_open(NAME, O_CREAT | O_RDWR, 0600, NULL));
	close(7);
	EXPECT(ENOENT, mq_open(NAME, O_RDWR));
	check(mq_open(NAME, O_CREAT | O_RDWR, 0600, NULL) == 7);
}

static void rights(void)
{
	mqd_t queue = fresh_queue(0, 1, 8);
	check(queue >= 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	EXPECT(EACCES, mq_open(NAME, O_RDONLY));
	struct mq_attr large = {.mq_maxmsg = 11, .mq_msgsize = 8};
	EXPECT(EINVAL, mq_open("/too-large", O_CREAT | O_RDWR, 0600, &large));
	check(mq_unlink(NAME) == -1 && (errno == EPERM || errno == EACCES));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--say-and-wait") == 0) {
		check(write(1, "s", 1) == 1);
		for (;;)
			pause();
	}
	own_name = access(argv[0], X_OK) == 0 ? argv[0] : "/proc/self/exe";
	RUN(order);
	RUN(errors);
	RUN(waiting);
	RUN(interrupted);
	RUN(news);
	RUN(forgotten);
	RUN(large_message);
	RUN(without_names);
	RUN(no_descriptor);
	RUN(rights);
	check(mq_unlink(NAME) == 0);
	puts("ok");
	return 0;
}
