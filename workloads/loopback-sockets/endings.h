/* How connections end, and how attempts at one do: what each side reads, writes and sees afterwards. */

enum { ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2 = 5, CLOSED = 7, CLOSE_WAIT = 8 };

static int status_of(int descriptor)
{
	struct tcp_info information;
	socklen_t size = sizeof information;
	check(getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &information, &size) == 0);
	return information.tcpi_state;
}

/* It has finished, and the other side has not; whether that has heard of it does not matter. */
static int has_finished(int descriptor)
{
	int status = status_of(descriptor);
	return status == FIN_WAIT1 || status == FIN_WAIT2;
}

/* A pair of which both sides have sent something, and the second has ended its direction. */
static void half_ended(int *pair)
{
	connected(pair);
	check(write(pair[0], "lost", 4) == 4 && write(pair[1], "seen", 4) == 4 && shutdown(pair[1], SHUT_WR) == 0);
	settle();
}

/* Who has been told of the end hears of nothing that goes wrong later, except by writing and asking. */
static void resets(void)
{
	int pair[2];
	char text[9];
	struct sockaddr_in peer;
	socklen_t size = SIZE;
	for (int lingers = 0; lingers < 2; lingers++) {
		half_ended(pair);
		check(status_of(pair[0]) == CLOSE_WAIT && has_finished(pair[1]));
		if (lingers)
			check(read(pair[1], text, 9) == 4 && setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)) == 0);
		check(close(pair[1]) == 0);
		settle();
		check(polled(pair[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR) && status_of(pair[0]) == CLOSED);
		check(read(pair[0], text, 9) == 4 && read(pair[0], text, 9) == 0 && read(pair[0], text, 9) == 0);
		EXPECT(ENOTCONN, getpeername(pair[0], (void *)&peer, &size));
		EXPECT(ENOTCONN, shutdown(pair[0], SHUT_WR));
		check(option(pair[0], SOL_SOCKET, SO_ERROR) == EPIPE && option(pair[0], SOL_SOCKET, SO_ERROR) == 0);
		check(read(pair[0], text, 9) == 0);
		EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
		check(close(pair[0]) == 0);
	}
	/* Writing to who is gone: the reset that answers is no error of reading. */
	connected(pair);
	check(close(pair[1]) == 0);
	settle();
	check(send(pair[0], "", 0, MSG_NOSIGNAL) == 0 && status_of(pair[0]) == CLOSE_WAIT);
	check(send(pair[0], "a", 1, MSG_NOSIGNAL) == 1);
	settle();
	check(read(pair[0], text, 9) == 0 && (polled(pair[0]) & POLLERR));
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	check(!(polled(pair[0]) & POLLERR) && read(pair[0], text, 9) == 0 && close(pair[0]) == 0);
	/* Who has ended its own direction only is told. */
	connected(pair);
	check(write(pair[0], "lost", 4) == 4 && shutdown(pair[0], SHUT_WR) == 0);
	settle();
	check(close(pair[1]) == 0);
	settle();
	EXPECT(ECONNRESET, read(pair[0], text, 9));
	check(read(pair[0], text, 9) == 0 && close(pair[0]) == 0);
	/* Both have ended: nothing of it goes wrong any more. */
	half_ended(pair);
	check(shutdown(pair[0], SHUT_WR) == 0);
	settle();
	check(status_of(pair[0]) == CLOSED && close(pair[1]) == 0);
	settle();
	check(polled(pair[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP) && read(pair[0], text, 9) == 4 && read(pair[0], text, 9) == 0);
	EXPECT(ENOTCONN, shutdown(pair[0], SHUT_RDWR));
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	check(option(pair[0], SOL_SOCKET, SO_ERROR) == 0 && close(pair[0]) == 0);
	/* Given up by who asked for it: both hear of a reset. */
	connected(pair);
	check(connect(pair[0], (void *)&(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)) == 0);
	settle();
	check(option(pair[0], SOL_SOCKET, SO_ERROR) == ECONNRESET && option(pair[1], SOL_SOCKET, SO_ERROR) == ECONNRESET);
	check(close(pair[0]) == 0 && close(pair[1]) == 0);
}

/* Who has shut down its own side is connected until the other has done so, too. */
static void own_ends(void)
{
	int pair[2];
	char text[9];
	struct sockaddr_in peer, address;
	socklen_t size = SIZE;
	connected(pair);
	check(shutdown(pair[0], SHUT_RD) == 0 && status_of(pair[0]) == ESTABLISHED);
	check(write(pair[1], "still", 5) == 5);
	settle();
	check(read(pair[0], text, 9) == 5 && read(pair[0], text, 9) == 0);
	check(shutdown(pair[0], SHUT_RDWR) == 0 && getpeername(pair[0], (void *)&peer, &size) == 0 && has_finished(pair[0]));
	settle();
	check(status_of(pair[1]) == CLOSE_WAIT && getpeername(pair[1], (void *)&peer, &size) == 0 && shutdown(pair[1], SHUT_WR) == 0);
	settle();
	EXPECT(ENOTCONN, getpeername(pair[0], (void *)&peer, &size));
	EXPECT(ENOTCONN, getpeername(pair[1], (void *)&peer, &size));
	check(close(pair[0]) == 0 && close(pair[1]) == 0);
	/* Reset before it was accepted: it can be, and says from where it came. */
	int one = listener(&address, 5), client = stream();
	check(connect(client, (void *)&address, SIZE) == 0);
	check(setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)) == 0 && close(client) == 0);
	settle();
	client = accept(one, (void *)&peer, &size);
	check(client >= 0 && size == SIZE && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	EXPECT(ECONNRESET, read(client, text, 9));
	check(close(client) == 0 && close(one) == 0);
	/* Refused: once, and then there is no connection. */
	struct sockaddr_in nobody = at("127.0.0.1", 1);
	client = stream();
	EXPECT(ECONNREFUSED, connect(client, (void *)&nobody, SIZE));
	check(polled(client) == (POLLOUT | POLLHUP));
	EXPECT(ENOTCONN, read(client, text, 9));
	check(close(client) == 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	EXPECT(EINPROGRESS, connect(client, (void *)&nobody, SIZE));
	settle();
	EXPECT(ECONNREFUSED, read(client, text, 9));
	check(read(client, text, 9) == 0);
	EXPECT(ECONNABORTED, connect(client, (void *)&nobody, SIZE));
	EXPECT(EINPROGRESS, connect(client, (void *)&nobody, SIZE));
	settle();
	EXPECT(ECONNREFUSED, connect(client, (void *)&nobody, SIZE));
	check(close(client) == 0);
	/* What never was connected can be shut down all the same, and stays so. */
	client = stream();
	EXPECT(ENOTCONN, shutdown(client, SHUT_RDWR));
	check(polled(client) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP) && read(client, text, 9) == 0 && close(client) == 0);
}

struct sleeper {
	int descriptor, polls;
	long result;
};

static void *sleep_on(void *argument)
{
	struct sleeper *sleeper = argument;
	char text[9];
	struct pollfd one = {sleeper->descriptor, POLLIN | POLLRDHUP, 0};
	sleeper->result = sleeper->polls ? (poll(&one, 1, -1), one.revents) : recv(sleeper->descriptor, text, 9, 0);
	return NULL;
}

/* Whoever waits for datagrams is told that none will be awaited, connected or not. */
static void unconnected(void)
{
	struct sockaddr_in address = at("127.0.0.1", 0);
	socklen_t size = SIZE;
	char text[9];
	int one = socket(AF_INET, SOCK_DGRAM, 0), two = socket(AF_INET, SOCK_DGRAM, 0);
	check(bind(one, (void *)&address, SIZE) == 0 && getsockname(one, (void *)&address, &size) == 0);
	struct sleeper sleepers[2] = {{one, 0, -1}, {one, 1, -1}};
	pthread_t threads[2];
	for (int at = 0; at < 2; at++)
		check(pthread_create(&threads[at], NULL, sleep_on, &sleepers[at]) == 0);
	usleep(50000);
	EXPECT(ENOTCONN, shutdown(one, SHUT_RD));
	for (int at = 0; at < 2; at++)
		check(pthread_join(threads[at], NULL) == 0);
	check(sleepers[0].result == 0 && sleepers[1].result == (POLLIN | POLLRDHUP));
	/* Only who would wait reads an end; and what comes is still received. */
	check(recv(one, text, 9, 0) == 0);
	EXPECT(EAGAIN, recv(one, text, 9, MSG_DONTWAIT));
	check(sendto(two, "late", 4, 0, (void *)&address, SIZE) == 4);
	settle();
	check(recv(one, text, 9, 0) == 4);
	EXPECT(ENOTCONN, shutdown(two, SHUT_WR));
	EXPECT(EPIPE, sendto(two, "a", 1, 0, (void *)&address, SIZE));
	EXPECT(ENOTCONN, shutdown(two, SHUT_RD));
	check(polled(two) & POLLHUP);
	check(connect(two, (void *)&address, SIZE) == 0 && (polled(two) & POLLHUP) && shutdown(two, SHUT_RDWR) == 0);
	check(connect(two, (void *)&(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)) == 0 && (polled(two) & POLLHUP));
	check(close(one) == 0 && close(two) == 0);
}

/* A listener whose backlog is full. */
static int full_listener(struct sockaddr_in *address)
{
	int full = listener(address, 1);
	for (int at = 0; at < 2; at++)
		check(connect(stream(), (void *)address, SIZE) == 0);
	return full;
}

/* Who waits at one listener and turns to another has to do with that one only. */
static void elsewhere(void)
{
	struct sockaddr_in first, second, peer;
	socklen_t size = SIZE;
	int one = full_listener(&first), two = full_listener(&second), clients[2];
	for (int at = 0; at < 2; at++) {
		clients[at] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		EXPECT(EINPROGRESS, connect(clients[at], (void *)&first, SIZE));
		check(connect(clients[at], (void *)&(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)) == 0);
		check(option(clients[at], SOL_SOCKET, SO_ERROR) == ECONNRESET);
		EXPECT(EINPROGRESS, connect(clients[at], (void *)&second, SIZE));
		EXPECT(ENOTCONN, getpeername(clients[at], (void *)&peer, &size));
	}
	for (int at = 0; at < 2; at++)
		check(accept(one, NULL, NULL) >= 0);
	settle();
	struct pollfd ready[2] = {{clients[0], POLLOUT, 0}, {clients[1], POLLOUT, 0}}, arrived = {one, POLLIN, 0};
	check(poll(ready, 2, 0) == 0 && poll(&arrived, 1, 0) == 0);
	check(close(one) == 0);
	settle();
	check(poll(ready, 2, 0) == 0);
	for (int at = 0; at < 4; at++)
		check(accept(two, NULL, NULL) >= 0);
	for (int at = 0; at < 2; at++) {
		check(poll(&ready[at], 1, 10000) == 1 && ready[at].revents == POLLOUT);
		check(getpeername(clients[at], (void *)&peer, &size) == 0 && peer.sin_port == second.sin_port);
	}
	/* Shut down while it waits: it is not connecting any more. */
	check(close(two) == 0);
	one = full_listener(&first);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	EXPECT(EINPROGRESS, connect(client, (void *)&first, SIZE));
	check(shutdown(client, SHUT_RDWR) == 0 && option(client, SOL_SOCKET, SO_ERROR) == ECONNRESET);
	check(polled(client) == (POLLOUT | POLLHUP) && close(client) == 0);
	/* Time runs out: for who began it, and for who came to it. */
	struct timeval soon = {0, 20000};
	client = stream();
	check(setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon) == 0);
	EXPECT(EINPROGRESS, connect(client, (void *)&first, SIZE));
	EXPECT(EALREADY, connect(client, (void *)&first, SIZE));
	check(close(client) == 0 && close(one) == 0);
}

/* A port of UDP that several have: with SO_REUSEPORT each sender stays with one of them, with SO_REUSEADDR the last has all. */
static void shared_ports(void)
{
	for (int name = SO_REUSEADDR; name != 0; name = name == SO_REUSEADDR ? SO_REUSEPORT : 0) {
		struct sockaddr_in address = at("127.0.0.1", 0);
		socklen_t size = SIZE;
		int sharing[3], got[3] = {0}, total = 0;
		char text[9];
		for (int one = 0; one < 3; one++) {
			sharing[one] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
			set(sharing[one], SOL_SOCKET, name, 1);
			check(bind(sharing[one], (void *)&address, SIZE) == 0 && getsockname(sharing[one], (void *)&address, &size) == 0);
		}
		for (int sender = 0; sender < 60; sender++) {
			int from = socket(AF_INET, SOCK_DGRAM, 0), with = -1;
			for (int turn = 0; turn < 5; turn++)
				check(sendto(from, "x", 1, 0, (void *)&address, SIZE) == 1);
			settle();
			for (int one = 0; one < 3; one++)
				while (recv(sharing[one], text, 9, 0) == 1) {
					check(with < 0 || with == one);
					with = one;
					got[one]++;
					total++;
				}
			check(close(from) == 0);
		}
		check(total == 300);
		if (name == SO_REUSEADDR)
			check(got[2] == total);
		else
			check(got[0] && got[1] && got[2]);
		for (int one = 0; one < 3; one++)
			check(close(sharing[one]) == 0);
	}
	/* Listeners are chosen so, too. */
	struct sockaddr_in address = at("127.0.0.1", 0);
	socklen_t size = SIZE;
	int listeners[2], accepted[2] = {0};
	for (int one = 0; one < 2; one++) {
		listeners[one] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		set(listeners[one], SOL_SOCKET, SO_REUSEPORT, 1);
		check(bind(listeners[one], (void *)&address, SIZE) == 0 && listen(listeners[one], 100) == 0);
		check(getsockname(listeners[one], (void *)&address, &size) == 0);
	}
	for (int client = 0; client < 40; client++)
		check(connect(stream(), (void *)&address, SIZE) == 0);
	settle();
	for (int one = 0; one < 2; one++)
		while (accept(listeners[one], NULL, NULL) >= 0)
			accepted[one]++;
	check(accepted[0] && accepted[1] && accepted[0] + accepted[1] == 40);
}

static void *send_rest(void *descriptor)
{
	usleep(50000);
	check(write(*(int *)descriptor, "cd", 2) == 2);
	return NULL;
}

/* Looking at bytes that are not all there yet, and control messages that are AF_UNIX's. */
static void messages(void)
{
	int pair[2], datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	char text[9] = "ab";
	pthread_t other;
	connected(pair);
	check(write(pair[0], "ab", 2) == 2 && pthread_create(&other, NULL, send_rest, &pair[0]) == 0);
	check(recv(pair[1], text, 4, MSG_PEEK | MSG_WAITALL) == 4 && !memcmp(text, "abcd", 4) && pthread_join(other, NULL) == 0);
	check(recv(pair[1], text, 9, 0) == 4 && !memcmp(text, "abcd", 4));
	union {
		struct cmsghdr first;
		char room[64];
	} control = {.first = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {text, 2};
	struct sockaddr_in address = at("127.0.0.1", 9);
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int))};
	*(int *)CMSG_DATA(&control.first) = 77;
	check(sendmsg(pair[0], &message, 0) == 2);
	message.msg_name = &address;
	message.msg_namelen = SIZE;
	check(sendmsg(datagrams, &message, 0) == 2);
	control.first.cmsg_type = SCM_CREDENTIALS;
	check(sendmsg(datagrams, &message, 0) == 2);
	control.first.cmsg_type = 99;
	EXPECT(EINVAL, sendmsg(datagrams, &message, 0));
	EXPECT(EINVAL, sendmsg(pair[0], &message, 0));
}
