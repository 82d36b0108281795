/* How sockets of AF_UNIX end, who waits then, and what is collected that nobody can reach. */

struct call {
	int descriptor, error;
	long result;
	struct sockaddr_un name;
	socklen_t length;
};

static void *write_much(void *argument)
{
	struct call *call = argument;
	static char much[1 << 20];
	while ((call->result = write(call->descriptor, much, sizeof much)) > 0)
		;
	call->error = errno;
	return NULL;
}

static void *connect_it(void *argument)
{
	struct call *call = argument;
	call->result = connect(call->descriptor, (void *)&call->name, call->length);
	call->error = errno;
	return NULL;
}

static void endings(void)
{
	int pair[2];
	char text[9];
	/* Of packets, what went wrong is told before what has come. */
	for (int turn = 0; turn < 2; turn++) {
		pair_of(SOCK_SEQPACKET, pair);
		check(write(pair[0], "lost", 4) == 4 && write(pair[1], "seen", 4) == 4 && close(pair[1]) == 0);
		if (turn == 0)
			EXPECT(ECONNRESET, read(pair[0], text, 9));
		else
			EXPECT(ECONNRESET, write(pair[0], "a", 1));
		EXPECT(EPIPE, write(pair[0], "a", 1));
		check(read(pair[0], text, 9) == 4 && read(pair[0], text, 9) == 0 && close(pair[0]) == 0);
	}
	/* A stream that ends under who waits to write: no signal. */
	check(signal(SIGPIPE, count_pipes) != SIG_ERR);
	for (int turn = 0; turn < 3; turn++) {
		pthread_t writer;
		pair_of(SOCK_STREAM, pair);
		struct call call = {.descriptor = pair[0]};
		int small = 5000, before = pipes;
		check(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
		static char piece[1000];
		while (send(pair[0], piece, sizeof piece, MSG_DONTWAIT) > 0)
			;
		check(errno == EAGAIN && pthread_create(&writer, NULL, write_much, &call) == 0);
		usleep(50000);
		check(turn == 0 ? shutdown(pair[1], SHUT_RD) == 0 : turn == 1 ? shutdown(pair[0], SHUT_WR) == 0 : close(pair[1]) == 0);
		check(pthread_join(writer, NULL) == 0 && call.result == -1 && call.error == (turn == 2 ? ECONNRESET : EPIPE));
		check(pipes == before);
		EXPECT(EPIPE, write(pair[0], "a", 1));
		check(pipes == before + 1 && close(pair[0]) == 0 && (turn == 2 || close(pair[1]) == 0));
	}
	/* Of datagrams, only who would wait reads an end. */
	pair_of(SOCK_DGRAM, pair);
	check(shutdown(pair[0], SHUT_RD) == 0 && read(pair[0], text, 9) == 0);
	EXPECT(EAGAIN, recv(pair[0], text, 9, MSG_DONTWAIT));
	EXPECT(EPIPE, write(pair[1], "a", 1));
	pair_of(SOCK_SEQPACKET, pair);
	check(shutdown(pair[0], SHUT_RD) == 0 && recv(pair[0], text, 9, MSG_DONTWAIT) == 0);
}

/* Two threads connect one socket: each waits, one gets it. */
static void connecting(void)
{
	struct call calls[2];
	pthread_t threads[2];
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), one = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
	for (int at = 0; at < 2; at++) {
		calls[at].length = named(&calls[at].name, "/tmp/busy-socket");
		calls[at].descriptor = one;
	}
	unlink(calls[0].name.sun_path);
	check(bind(listener, (void *)&calls[0].name, calls[0].length) == 0 && listen(listener, 0) == 0);
	check(connect(first, (void *)&calls[0].name, calls[0].length) == 0);
	for (int at = 0; at < 2; at++)
		check(pthread_create(&threads[at], NULL, connect_it, &calls[at]) == 0);
	usleep(50000);
	check(fcntl(one, F_SETFL, O_NONBLOCK) == 0);
	EXPECT(EAGAIN, connect(one, (void *)&calls[0].name, calls[0].length));
	for (int at = 0; at < 2; at++) {
		check(accept(listener, NULL, NULL) >= 0);
		usleep(50000);
	}
	for (int at = 0; at < 2; at++)
		check(pthread_join(threads[at], NULL) == 0);
	for (int at = 0; at < 2; at++)
		check((calls[at].result == 0) == (calls[1 - at].result == -1 && calls[1 - at].error == EISCONN));
	check(unlink(calls[0].name.sun_path) == 0);
}

/* Looking shows all that is there, and does not wait for more. */
static void looking(void)
{
	int pair[2];
	static char much[100000], seen[100000];
	for (size_t at = 0; at < sizeof much; at++)
		much[at] = at % 251;
	pair_of(SOCK_STREAM, pair);
	check(write(pair[0], much, sizeof much) == sizeof much);
	check(recv(pair[1], seen, sizeof seen, MSG_PEEK) == sizeof seen && !memcmp(seen, much, sizeof seen));
	check(recv(pair[1], seen, 3, MSG_PEEK | MSG_WAITALL) == 3);
	check(recv(pair[1], seen, sizeof seen, MSG_WAITALL) == sizeof seen && !memcmp(seen, much, sizeof seen));
	check(write(pair[0], "ab", 2) == 2 && recv(pair[1], seen, 4, MSG_PEEK | MSG_WAITALL) == 2);
}

/* A user may have about as many descriptors under way as it may have open; root as many as it likes. */
static void too_many(void)
{
	int pair[2], got, sent = 0;
	struct rlimit few = {32, 32};
	struct parcel parcel;
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (int at = 0; at < 100; at++)
		send_descriptors(pair[0], &(int){0}, 1, "r");
	check(setresuid(1001, 1001, 1001) == 0);
	for (;; sent++) {
		pack(&parcel, 1);
		enclose(&parcel, SCM_RIGHTS, &(int){0}, sizeof(int));
		if (sendmsg(pair[0], &parcel.message, 0) != 1)
			break;
	}
	check(errno == ETOOMANYREFS && sent == 33);
	for (int at = 0; at < 101; at++)
		check(take_descriptors(pair[1], &got, sizeof parcel.control, 0, &parcel) == 1 && close(got) == 0);
	send_descriptors(pair[0], &(int){0}, 1, "again");
}

/* Opens and closes sockets that have nothing to do with anything. */
static double passers_by(int count)
{
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int at = 0; at < count; at++) {
		int pair[2];
		pair_of(SOCK_DGRAM, pair);
		check(close(pair[0]) == 0 && close(pair[1]) == 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	return after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) / 1e9;
}

/* What only sockets in each other's queues hold goes away when others are closed, which costs those little. */
static void collecting(void)
{
	int ends[2], pair[2], turn, idle = 3000;
	struct rlimit many = {10000, 10000};
	check(setrlimit(RLIMIT_NOFILE, &many) == 0);
	double alone = passers_by(500);
	for (int kind = 0; kind < 3; kind++) {
		check(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
		pair_of(kinds[kind], pair);
		int sent[] = {pair[0], pair[1], ends[1]};
		send_descriptors(pair[0], sent, 3, "one");
		send_descriptors(pair[1], sent, 3, "other");
		check(close(pair[0]) == 0 && close(pair[1]) == 0 && close(ends[1]) == 0);
		struct pollfd held = {ends[0], POLLIN, 0};
		for (turn = 0; turn < 1000 && poll(&held, 1, turn) == 0; turn++)
			passers_by(1);
		check(turn < 1000 && read(ends[0], sent, 1) == 0 && close(ends[0]) == 0);
	}
	/* In a listener's backlog. */
	struct sockaddr_un name;
	socklen_t length = named(&name, "/tmp/lost-socket");
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(name.sun_path);
	check(pipe(ends) == 0 && bind(listener, (void *)&name, length) == 0 && listen(listener, 1) == 0);
	check(connect(client, (void *)&name, length) == 0 && unlink(name.sun_path) == 0);
	send_descriptors(client, (int[]){listener, ends[1]}, 2, "lost");
	check(close(listener) == 0 && close(ends[1]) == 0 && close(client) == 0);
	struct pollfd held = {ends[0], POLLIN, 0};
	for (turn = 0; turn < 1000 && poll(&held, 1, turn) == 0; turn++)
		passers_by(1);
	check(turn < 1000);
	/* Many sockets, and one of them under way. */
	static int sockets[3000];
	for (int at = 0; at < idle; at++)
		check((sockets[at] = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0);
	pair_of(SOCK_STREAM, pair);
	send_descriptors(pair[0], sockets, 1, "under way");
	double beside = passers_by(500);
	if (beside > 10 * alone)
		fail("beside %d idle sockets, closing takes %.0f times as long", idle, beside / alone);
}
