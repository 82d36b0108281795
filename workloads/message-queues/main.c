/* POSIX message queues: order, limits, waiting, news of a message, names and rights, as the manual pages say. Each part runs in a child of its own.
 * Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
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

static void rights(void)
{
	mqd_t queue = fresh_queue(0, 1, 8);
	check(queue >= 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	EXPECT(EACCES, mq_open(NAME, O_RDONLY));
	struct mq_attr large = {.mq_maxmsg = 11, .mq_msgsize = 8};
	EXPECT(EINVAL, mq_open("/too-large", O_CREAT | O_RDWR, 0600, &large));
	check(mq_unlink(NAME) == -1 && (errno == EPERM || errno == EACCES));
}

int main(void)
{
	RUN(order);
	RUN(errors);
	RUN(waiting);
	RUN(interrupted);
	RUN(news);
	RUN(rights);
	check(mq_unlink(NAME) == 0);
	puts("ok");
	return 0;
}
