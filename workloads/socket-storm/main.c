/* Sockets under load: pairs of threads that send through small buffers with waiting and polling, connections that are made, used for a moment and closed
 * from both sides at once, and sockets that are shut down under a sender. No byte is lost or doubled, and nobody waits for ever. Passes on Linux too.
 */
#include "../include/workload.h"
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static long bytes = 200000, connections = 150, closings = 150, looks = 3000;

struct stream {
	int descriptor, polls;
};

static void wait_until(int descriptor, short events)
{
	struct pollfd one = {descriptor, events, 0};
	/* A wake-up that is lost shows as a failure and not as a test that never ends. */
	check(poll(&one, 1, 20000) == 1);
}

static void *send_all(void *argument)
{
	struct stream *stream = argument;
	unsigned char piece[700];
	for (long done = 0; done < bytes;) {
		long count = sizeof piece < (size_t)(bytes - done) ? (long)sizeof piece : bytes - done;
		for (long at = 0; at < count; at++)
			piece[at] = (done + at) % 251;
		if (stream->polls)
			wait_until(stream->descriptor, POLLOUT);
		long sent = send(stream->descriptor, piece, count, stream->polls ? MSG_DONTWAIT : 0);
		if (sent < 0) {
			check(errno == EAGAIN && stream->polls);
			continue;
		}
		done += sent;
	}
	check(shutdown(stream->descriptor, SHUT_WR) == 0);
	return NULL;
}

static void *receive_all(void *argument)
{
	struct stream *stream = argument;
	unsigned char piece[1000];
	long done = 0;
	int watch = epoll_create1(0);
	struct epoll_event event = {EPOLLIN | EPOLLRDHUP | EPOLLET, {0}};
	check(epoll_ctl(watch, EPOLL_CTL_ADD, stream->descriptor, &event) == 0);
	for (;;) {
		long count = recv(stream->descriptor, piece, sizeof piece, stream->polls ? MSG_DONTWAIT : 0);
		if (count < 0) {
			check(errno == EAGAIN && stream->polls && epoll_wait(watch, &event, 1, 20000) == 1);
			continue;
		}
		if (count == 0)
			break;
		for (long at = 0; at < count; at++)
			check(piece[at] == (done + at) % 251);
		done += count;
	}
	check(done == bytes && close(watch) == 0);
	return NULL;
}

static struct sockaddr_in address = {.sin_family = AF_INET};
static int listener;

static int connect_once(void)
{
	int one = socket(AF_INET, SOCK_STREAM, 0);
	check(one >= 0 && connect(one, (void *)&address, sizeof address) == 0);
	return one;
}

static void exchange(int *pair, int polls)
{
	struct stream ends[2] = {{pair[0], polls}, {pair[1], polls}};
	pthread_t threads[4];
	check(pthread_create(&threads[0], NULL, send_all, &ends[0]) == 0);
	check(pthread_create(&threads[1], NULL, receive_all, &ends[1]) == 0);
	check(pthread_create(&threads[2], NULL, send_all, &ends[1]) == 0);
	check(pthread_create(&threads[3], NULL, receive_all, &ends[0]) == 0);
	for (int at = 0; at < 4; at++)
		check(pthread_join(threads[at], NULL) == 0);
	check(close(pair[0]) == 0 && close(pair[1]) == 0);
}

static void *connect_often(void *unused)
{
	for (long at = 0; at < connections; at++) {
		int one = connect_once();
		char text[8];
		check(write(one, "ping", 4) == 4);
		wait_until(one, POLLIN);
		check(recv(one, text, 4, MSG_WAITALL) == 4 && read(one, text, 8) == 0 && close(one) == 0);
	}
	return unused;
}

static void *accept_often(void *unused)
{
	for (long at = 0; at < connections; at++) {
		int one = accept(listener, NULL, NULL);
		char text[8];
		check(one >= 0 && recv(one, text, 4, MSG_WAITALL) == 4 && write(one, text, 4) == 4 && close(one) == 0);
	}
	return unused;
}

static void *push(void *descriptor)
{
	char piece[4000] = {0};
	while (send(*(int *)descriptor, piece, sizeof piece, MSG_NOSIGNAL) > 0)
		;
	check(errno == EPIPE || errno == ECONNRESET);
	return NULL;
}

static void *pull(void *descriptor)
{
	char piece[4000];
	while (recv(*(int *)descriptor, piece, sizeof piece, 0) > 0)
		;
	return NULL;
}

/* Senders and receivers sleep in a connection that ends under them, by turns in each way there is. */
static void end_under_load(void)
{
	for (long at = 0; at < closings; at++) {
		int pair[2], spare;
		pthread_t threads[3];
		check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		check(pthread_create(&threads[0], NULL, push, &pair[0]) == 0 && pthread_create(&threads[1], NULL, push, &pair[0]) == 0);
		if (at % 3 == 0) {
			check(pthread_create(&threads[2], NULL, pull, &pair[1]) == 0);
			usleep(at % 7 * 100);
			check(shutdown(pair[1], SHUT_RDWR) == 0);
		} else {
			/* Nobody receives: they wait for room. The partner's last descriptor goes, or their own end is shut down. */
			check(pthread_create(&threads[2], NULL, pull, &pair[0]) == 0);
			usleep(at % 7 * 100);
			spare = pair[1];
			check(at % 3 == 1 ? close(spare) == 0 : shutdown(pair[0], SHUT_RDWR) == 0);
		}
		for (int thread = 0; thread < 3; thread++)
			check(pthread_join(threads[thread], NULL) == 0);
		check(close(pair[0]) == 0);
		if (at % 3 != 1)
			check(close(pair[1]) == 0);
	}
}

/* Several threads send sockets through each other, and receive and drop what they find. */
static int ring[3][2];

static void *pass_around(void *argument)
{
	long seed = (long)argument;
	for (long at = 0; at < 300; at++) {
		union {
			struct cmsghdr first;
			char room[64];
		} control;
		char byte = 0;
		struct iovec part = {&byte, 1};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
		int *through = ring[(seed + at) % 3], sent[2];
		check(socketpair(AF_UNIX, SOCK_DGRAM, 0, sent) == 0);
		control.first = (struct cmsghdr){CMSG_LEN(sizeof sent), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.first), sent, sizeof sent);
		message.msg_controllen = CMSG_SPACE(sizeof sent);
		/* Into itself first, now and then: a cycle once both are closed. */
		if (at % 4 == 0)
			check(sendmsg(sent[0], &message, MSG_DONTWAIT) == 1);
		check(sendmsg(through[0], &message, MSG_DONTWAIT) == 1 || errno == EAGAIN || errno == ETOOMANYREFS);
		check(close(sent[0]) == 0 && close(sent[1]) == 0);
		message.msg_controllen = sizeof control;
		if (recvmsg(through[1], &message, MSG_DONTWAIT) < 0) {
			check(errno == EAGAIN);
			continue;
		}
		if (message.msg_controllen == 0 || control.first.cmsg_len != CMSG_LEN(sizeof sent))
			continue;
		memcpy(sent, CMSG_DATA(&control.first), sizeof sent);
		/* Whoever is received can be used. */
		check(send(sent[0], "x", 1, MSG_DONTWAIT) == 1 && close(sent[0]) == 0 && close(sent[1]) == 0);
	}
	return NULL;
}

/* Sends `sent` into a queue with one byte, or looks at what is in one without taking it. */
static int carry(int through, int sent, int looks)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.first = {CMSG_LEN(sizeof sent), SOL_SOCKET, SCM_RIGHTS}};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	memcpy(CMSG_DATA(&control.first), &sent, sizeof sent);
	check((looks ? recvmsg(through, &message, MSG_PEEK | MSG_DONTWAIT) : sendmsg(through, &message, 0)) == 1);
	check(control.first.cmsg_len == CMSG_LEN(sizeof sent));
	memcpy(&sent, CMSG_DATA(&control.first), sizeof sent);
	return sent;
}

/* Two sockets are in each other's queues, and one descriptor goes from the one to the other and back by looking: what can be reached so is no garbage. */
static void *look_around(void *unused)
{
	int one[2], other[2];
	check(socketpair(AF_UNIX, SOCK_DGRAM, 0, one) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, other) == 0);
	carry(one[0], other[1], 0);
	carry(other[0], one[1], 0);
	check(close(one[0]) == 0 && close(other[0]) == 0 && close(other[1]) == 0);
	for (long at = 0; at < looks; at++) {
		int next = carry(one[1], -1, 1);
		check(close(one[1]) == 0);
		one[1] = next;
	}
	check(close(one[1]) == 0);
	return unused;
}

static void *pass_by(void *unused)
{
	for (long at = 0; at < looks; at++) {
		int pair[2];
		check(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int pair[2], small = 5000;
	pthread_t threads[6];
	socklen_t size = sizeof address;
	bytes = number_option(argc, argv, "bytes", 1, bytes);
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	check(bind(listener, (void *)&address, size) == 0 && listen(listener, 2) == 0);
	check(getsockname(listener, (void *)&address, &size) == 0);
	for (int polls = 0; polls < 2; polls++) {
		check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		for (int end = 0; end < 2; end++)
			check(setsockopt(pair[end], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
		exchange(pair, polls);
		pair[0] = connect_once();
		pair[1] = accept(listener, NULL, NULL);
		check(pair[1] >= 0);
		exchange(pair, polls);
	}
	for (int at = 0; at < 6; at++)
		check(pthread_create(&threads[at], NULL, at % 2 ? accept_often : connect_often, NULL) == 0);
	for (int at = 0; at < 6; at++)
		check(pthread_join(threads[at], NULL) == 0);
	end_under_load();
	for (int at = 0; at < 3; at++)
		check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ring[at]) == 0);
	for (long at = 0; at < 4; at++)
		check(pthread_create(&threads[at], NULL, pass_around, (void *)at) == 0);
	for (int at = 0; at < 4; at++)
		check(pthread_join(threads[at], NULL) == 0);
	for (int at = 0; at < 4; at++)
		check(pthread_create(&threads[at], NULL, at % 2 ? look_around : pass_by, NULL) == 0);
	for (int at = 0; at < 4; at++)
		check(pthread_join(threads[at], NULL) == 0);
	printf("ok\n");
	return 0;
}
