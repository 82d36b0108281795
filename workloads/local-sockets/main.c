/* Sockets of AF_UNIX, call by call. Each part runs in a child of its own. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

/* No memory of ours. */
static void *volatile bad = (void *)8;
#include "message.h"

static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

static void pair_of(int kind, int *pair)
{
	check(socketpair(AF_UNIX, kind, 0, pair) == 0);
}

static short polled(int descriptor)
{
	struct pollfd one = {descriptor, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0};
	check(poll(&one, 1, 0) >= 0);
	return one.revents;
}

static socklen_t named(struct sockaddr_un *name, const char *path)
{
	memset(name, 0, sizeof *name);
	name->sun_family = AF_UNIX;
	strcpy(name->sun_path, path);
	return offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
}

static void making(void)
{
	int pair[2];
	EXPECT(EAFNOSUPPORT, socket(AF_APPLETALK + 30, SOCK_STREAM, 0));
	EXPECT(EINVAL, socket(AF_UNIX, SOCK_STREAM | 0x100, 0));
	EXPECT(EINVAL, socket(AF_UNIX, 11, 0));
	EXPECT(ESOCKTNOSUPPORT, socket(AF_UNIX, SOCK_RDM, 0));
	EXPECT(EPROTONOSUPPORT, socket(AF_UNIX, SOCK_STREAM, 2));
	EXPECT(EOPNOTSUPP, socketpair(AF_INET, SOCK_STREAM, 0, pair));
	EXPECT(EFAULT, socketpair(AF_UNIX, SOCK_STREAM, 0, bad));
	EXPECT(EBADF, listen(99, 1));
	EXPECT(ENOTSOCK, listen(1, 1));
	EXPECT(ENOTSOCK, send(1, "a", 1, 0));
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	check(fcntl(pair[0], F_GETFD) == FD_CLOEXEC && fcntl(pair[1], F_GETFL) == (O_RDWR | O_NONBLOCK));
	struct stat status;
	check(fstat(pair[0], &status) == 0 && S_ISSOCK(status.st_mode));
	EXPECT(ESPIPE, lseek(pair[0], 0, SEEK_SET));
	EXPECT(ESPIPE, pread(pair[0], &status, 1, 0));
	EXPECT(EAGAIN, recv(pair[0], &status, 1, 0));
	EXPECT(EINVAL, shutdown(pair[0], 3));
	for (size_t at = 0; at < 3; at++) {
		int one = socket(AF_UNIX, kinds[at], 0), kind;
		socklen_t size = sizeof kind;
		check(getsockopt(one, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == kinds[at] && size == 4);
		EXPECT(ENOTCONN, getpeername(one, (void *)&status, &size));
		check(close(one) == 0);
	}
}

static void streams(void)
{
	int pair[2], count;
	char text[64];
	pair_of(SOCK_STREAM, pair);
	check(polled(pair[0]) == POLLOUT);
	check(write(pair[0], "hello", 5) == 5 && send(pair[0], " world", 6, 0) == 6);
	check(ioctl(pair[1], FIONREAD, &count) == 0 && count == 11);
	check(polled(pair[1]) == (POLLIN | POLLOUT));
	check(recv(pair[1], text, 3, MSG_PEEK) == 3 && !memcmp(text, "hel", 3));
	check(recv(pair[1], text, 4, 0) == 4 && read(pair[1], text + 4, 60) == 7 && !memcmp(text, "hello world", 11));
	EXPECT(EAGAIN, recv(pair[1], text, 1, MSG_DONTWAIT));
	struct iovec parts[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
	check(writev(pair[1], parts, 3) == 5);
	struct iovec places[] = {{text, 1}, {text + 1, 30}};
	check(readv(pair[0], places, 2) == 5 && !memcmp(text, "abcde", 5));
	EXPECT(EFAULT, write(pair[0], bad, 1));
	check(write(pair[0], "keep", 4) == 4);
	EXPECT(EFAULT, read(pair[1], bad, 4));
	check(read(pair[1], text, 9) == 4 && !memcmp(text, "keep", 4));
	EXPECT(EISCONN, sendto(pair[0], "a", 1, 0, (void *)&(struct sockaddr_un){AF_UNIX, "x"}, 4));
	EXPECT(EINVAL, recv(pair[0], text, 1, MSG_OOB));
	/* Half an end, then the whole. */
	check(shutdown(pair[0], SHUT_WR) == 0);
	check(polled(pair[1]) == (POLLIN | POLLOUT | POLLRDHUP) && read(pair[1], text, 9) == 0);
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	check(write(pair[1], "back", 4) == 4 && read(pair[0], text, 9) == 4);
	check(close(pair[0]) == 0);
	check(polled(pair[1]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
	EXPECT(EPIPE, send(pair[1], "a", 1, MSG_NOSIGNAL));
	check(close(pair[1]) == 0);
	/* What was not read is a reset. */
	pair_of(SOCK_STREAM, pair);
	check(write(pair[0], "lost", 4) == 4 && write(pair[1], "seen", 4) == 4 && close(pair[1]) == 0);
	check(polled(pair[0]) & POLLERR);
	check(read(pair[0], text, 9) == 4);
	EXPECT(ECONNRESET, read(pair[0], text, 9));
	check(read(pair[0], text, 9) == 0);
}

static volatile sig_atomic_t pipes;
static void count_pipes(int signal)
{
	(void)signal;
	pipes++;
}

/* Only streams raise SIGPIPE. */
static void broken(void)
{
	int pair[2];
	check(signal(SIGPIPE, count_pipes) != SIG_ERR);
	pair_of(SOCK_STREAM, pair);
	check(close(pair[1]) == 0);
	EXPECT(EPIPE, write(pair[0], "a", 1));
	check(pipes == 1);
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	check(pipes == 1);
	check(close(pair[0]) == 0);
	pair_of(SOCK_SEQPACKET, pair);
	check(shutdown(pair[1], SHUT_RD) == 0);
	EXPECT(EPIPE, write(pair[0], "a", 1));
	check(pipes == 1);
	check(close(pair[0]) == 0 && close(pair[1]) == 0);
	pair_of(SOCK_DGRAM, pair);
	check(close(pair[1]) == 0);
	EXPECT(ECONNREFUSED, write(pair[0], "a", 1));
	EXPECT(ENOTCONN, write(pair[0], "a", 1));
	check(pipes == 1);
}

static void packets(void)
{
	for (size_t at = 1; at < 3; at++) {
		int pair[2], count;
		char text[64];
		pair_of(kinds[at], pair);
		check(write(pair[0], "first", 5) == 5 && write(pair[0], "second", 6) == 6 && send(pair[0], "", 0, 0) == 0);
		check(ioctl(pair[1], FIONREAD, &count) == 0 && count == (kinds[at] == SOCK_DGRAM ? 5 : 11));
		check(recv(pair[1], text, 2, MSG_PEEK | MSG_TRUNC) == 5);
		check(recv(pair[1], text, 2, MSG_TRUNC) == 5);
		struct iovec part = {text, 3};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		check(recvmsg(pair[1], &message, 0) == 3 && (message.msg_flags & MSG_TRUNC) && !memcmp(text, "sec", 3));
		check(recv(pair[1], text, 9, 0) == 0);
		EXPECT(EAGAIN, recv(pair[1], text, 9, MSG_DONTWAIT));
		char *large = calloc(1, 1 << 20);
		EXPECT(EMSGSIZE, send(pair[0], large, 1 << 20, 0));
		free(large);
		check(close(pair[0]) == 0);
		if (kinds[at] == SOCK_SEQPACKET)
			check(read(pair[1], text, 9) == 0 && (polled(pair[1]) & POLLHUP));
		check(close(pair[1]) == 0);
	}
}

static void bounds(void)
{
	for (size_t at = 0; at < 3; at++) {
		int pair[2], size = 1;
		long total = 0;
		char piece[1000] = {0};
		socklen_t length = sizeof size;
		check(socketpair(AF_UNIX, kinds[at] | SOCK_NONBLOCK, 0, pair) == 0);
		check(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, length) == 0);
		check(getsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, &length) == 0 && size == 4608);
		size = 20000;
		check(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, length) == 0);
		while (write(pair[0], piece, sizeof piece) == sizeof piece)
			total += sizeof piece;
		check(errno == EAGAIN && total > 4000 && total < 100000);
		check(!(polled(pair[0]) & POLLOUT));
		while (read(pair[1], piece, sizeof piece) > 0)
			total -= sizeof piece;
		check(total == 0 && errno == EAGAIN && (polled(pair[0]) & POLLOUT));
	}
}

static void names(void)
{
	struct sockaddr_un name, found;
	socklen_t length = named(&name, "/tmp/a-socket"), size = sizeof found;
	struct stat status;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT(EINVAL, listen(listener, 1));
	EXPECT(EINVAL, bind(listener, (void *)&name, 1));
	EXPECT(EINVAL, bind(listener, (void *)&name, sizeof name + 1));
	EXPECT(EINVAL, bind(listener, (void *)&(struct sockaddr){AF_INET}, 16));
	EXPECT(ENOENT, bind(listener, (void *)&(struct sockaddr_un){AF_UNIX, "/no/such/place"}, sizeof name));
	EXPECT(EFAULT, bind(listener, bad, length));
	unlink(name.sun_path);
	umask(0027);
	check(bind(listener, (void *)&name, length) == 0);
	check(stat("/tmp/a-socket", &status) == 0 && status.st_mode == (S_IFSOCK | 0750));
	EXPECT(ENXIO, open("/tmp/a-socket", O_RDWR));
	EXPECT(EINVAL, bind(listener, (void *)&(struct sockaddr_un){AF_UNIX, "/tmp/another"}, sizeof name));
	EXPECT(EADDRINUSE, bind(other, (void *)&name, length));
	check(getsockname(listener, (void *)&found, &size) == 0 && size == length && !strcmp(found.sun_path, name.sun_path));
	EXPECT(ECONNREFUSED, connect(other, (void *)&name, length));
	check(listen(listener, 0) == 0);
	int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);
	EXPECT(EPROTOTYPE, connect(datagrams, (void *)&name, length));
	EXPECT(ENOENT, connect(other, (void *)&(struct sockaddr_un){AF_UNIX, "/tmp/nobody"}, sizeof name));
	EXPECT(ECONNREFUSED, connect(other, (void *)&(struct sockaddr_un){AF_UNIX, "/proc/self/exe"}, sizeof name));
	EXPECT(EOPNOTSUPP, listen(datagrams, 1));
	EXPECT(EOPNOTSUPP, accept(datagrams, NULL, NULL));
	EXPECT(EINVAL, accept(other, NULL, NULL));
	EXPECT(EINVAL, accept4(listener, NULL, NULL, 1));
	check(polled(listener) == 0);
	check(connect(other, (void *)&name, length) == 0);
	check(polled(listener) == POLLIN);
	/* One may wait with a backlog of none; the next is refused if it does not want to. */
	int third = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	EXPECT(EAGAIN, connect(third, (void *)&name, length));
	check(write(other, "early", 5) == 5);
	size = sizeof found;
	int accepted = accept4(listener, (void *)&found, &size, SOCK_CLOEXEC);
	char text[9];
	check(accepted >= 0 && size == 2 && fcntl(accepted, F_GETFD) == FD_CLOEXEC && read(accepted, text, 9) == 5);
	EXPECT(EISCONN, connect(other, (void *)&name, length));
	check(connect(third, (void *)&name, length) == 0);
	size = sizeof found;
	check(getpeername(other, (void *)&found, &size) == 0 && size == length);
	check(close(listener) == 0);
	EXPECT(ECONNRESET, read(third, text, 9));
	int late = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT(ECONNREFUSED, connect(late, (void *)&name, length));
	check(unlink("/tmp/a-socket") == 0);
}

static void abstract(void)
{
	struct sockaddr_un name = {AF_UNIX, "\0hidden"}, found;
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + 7, size = sizeof found;
	int one = socket(AF_UNIX, SOCK_DGRAM, 0), two = socket(AF_UNIX, SOCK_DGRAM, 0);
	char text[9];
	check(bind(one, (void *)&name, length) == 0);
	EXPECT(EADDRINUSE, bind(two, (void *)&name, length));
	/* No name: one is chosen. */
	check(bind(two, (void *)&name, sizeof(sa_family_t)) == 0);
	check(getsockname(two, (void *)&found, &size) == 0 && size == sizeof(sa_family_t) + 6 && !found.sun_path[0]);
	EXPECT(ENOTCONN, send(two, "a", 1, 0));
	check(sendto(two, "to one", 6, 0, (void *)&name, length) == 6);
	socklen_t from_size = sizeof name;
	struct sockaddr_un from;
	check(recvfrom(one, text, 9, 0, (void *)&from, &from_size) == 6 && from_size == size && !memcmp(&from, &found, size));
	check(connect(two, (void *)&name, length) == 0 && send(two, "again", 5, 0) == 5 && recv(one, text, 9, 0) == 5);
	/* Who is connected hears from its partner only. */
	int stranger = socket(AF_UNIX, SOCK_DGRAM, 0);
	EXPECT(EPERM, sendto(stranger, "a", 1, 0, (void *)&found, size));
	check(connect(two, (void *)&(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)) == 0);
	EXPECT(ENOTCONN, send(two, "a", 1, 0));
	/* A receiver that does not receive holds others up. */
	int sent = 0;
	check(fcntl(stranger, F_SETFL, O_NONBLOCK) == 0);
	while (sendto(stranger, "a", 1, 0, (void *)&name, length) == 1)
		sent++;
	check(errno == EAGAIN && sent == 11);
	check(connect(stranger, (void *)&name, length) == 0 && !(polled(stranger) & POLLOUT));
	check(recv(one, text, 9, 0) == 1 && (polled(stranger) & POLLOUT));
	check(close(one) == 0);
	EXPECT(ECONNREFUSED, sendto(two, "a", 1, 0, (void *)&name, length));
}

static void *send_later(void *socket)
{
	usleep(50000);
	check(write(*(int *)socket, "cd", 2) == 2);
	return NULL;
}

static void waiting(void)
{
	int pair[2];
	char text[9];
	pthread_t other;
	pair_of(SOCK_STREAM, pair);
	check(write(pair[0], "ab", 2) == 2 && pthread_create(&other, NULL, send_later, &pair[0]) == 0);
	check(recv(pair[1], text, 4, MSG_WAITALL) == 4 && !memcmp(text, "abcd", 4) && pthread_join(other, NULL) == 0);
	struct timeval soon = {0, 20000}, found;
	socklen_t size = sizeof found;
	check(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
	EXPECT(EAGAIN, read(pair[1], text, 1));
	check(getsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &found, &size) == 0 && size == 16 && found.tv_usec == 20000);
	EXPECT(EDOM, setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 1000000}, sizeof soon));
	EXPECT(EINVAL, setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &soon, 8));
	EXPECT(ENOPROTOOPT, setsockopt(pair[1], SOL_SOCKET, 9999, &soon, 8));
	EXPECT(EFAULT, getsockopt(pair[1], SOL_SOCKET, SO_TYPE, text, bad));
	/* Edges: one for each thing that comes. */
	int watch = epoll_create1(0);
	struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, {0}};
	check(epoll_ctl(watch, EPOLL_CTL_ADD, pair[1], &event) == 0);
	check(epoll_wait(watch, &event, 1, 0) == 1 && event.events == EPOLLOUT && epoll_wait(watch, &event, 1, 0) == 0);
	check(write(pair[0], "x", 1) == 1 && epoll_wait(watch, &event, 1, 0) == 1 && event.events == (EPOLLIN | EPOLLOUT));
	check(epoll_wait(watch, &event, 1, 0) == 0 && write(pair[0], "y", 1) == 1 && epoll_wait(watch, &event, 1, 0) == 1);
	check(shutdown(pair[0], SHUT_WR) == 0 && epoll_wait(watch, &event, 1, 0) == 1 && (event.events & EPOLLRDHUP));
}

#include "ending.h"

/* A connection stays in the queue until there is a descriptor for it. */
static void no_descriptor(void)
{
	struct sockaddr_un name;
	struct rlimit limit = {10, 10};
	socklen_t length = named(&name, "/tmp/full-table.socket");
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), caller = socket(AF_UNIX, SOCK_STREAM, 0);
	char got;
	unlink(name.sun_path);
	check(bind(listener, (struct sockaddr *)&name, length) == 0 && listen(listener, 4) == 0);
	check(connect(caller, (struct sockaddr *)&name, length) == 0 && write(caller, "c", 1) == 1 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while (dup(0) >= 0)
		;
	EXPECT(EMFILE, accept(listener, NULL, NULL));
	check(close(9) == 0 && accept(listener, NULL, NULL) == 9 && read(9, &got, 1) == 1 && got == 'c');
	/* Also if there is nobody yet to be taken. */
	EXPECT(EMFILE, accept(listener, NULL, NULL));
	unlink(name.sun_path);
}

int main(void)
{
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	RUN(making);
	RUN(streams);
	RUN(broken);
	RUN(packets);
	RUN(bounds);
	RUN(names);
	RUN(abstract);
	RUN(waiting);
	RUN(no_descriptor);
	RUN(descriptors);
	RUN(descriptor_errors);
	RUN(cycles);
	RUN(identities);
	RUN(many);
	RUN(files);
	RUN(endings);
	RUN(connecting);
	RUN(looking);
	RUN(too_many);
	RUN(collecting);
	printf("ok\n");
	return 0;
}
