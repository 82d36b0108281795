/* What goes with messages: descriptors, ids, several at a time; and files sent into sockets. */

struct parcel {
	struct msghdr message;
	struct iovec part;
	char text[64];
	union {
		struct cmsghdr first;
		char room[2048];
	} control;
};

static void pack(struct parcel *parcel, size_t length)
{
	memset(parcel, 0, sizeof *parcel);
	parcel->part = (struct iovec){parcel->text, length};
	parcel->message.msg_iov = &parcel->part;
	parcel->message.msg_iovlen = 1;
	parcel->message.msg_control = parcel->control.room;
	parcel->message.msg_controllen = sizeof parcel->control;
}

static void enclose(struct parcel *parcel, int type, const void *data, size_t length)
{
	parcel->control.first.cmsg_level = SOL_SOCKET;
	parcel->control.first.cmsg_type = type;
	parcel->control.first.cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(&parcel->control.first), data, length);
	parcel->message.msg_controllen = CMSG_SPACE(length);
}

static void send_descriptors(int socket, const int *descriptors, int count, const char *text)
{
	struct parcel parcel;
	pack(&parcel, strlen(text));
	strcpy(parcel.text, text);
	enclose(&parcel, SCM_RIGHTS, descriptors, count * sizeof *descriptors);
	check(sendmsg(socket, &parcel.message, 0) == (ssize_t)strlen(text));
}

/* Receives up to 63 bytes and how many descriptors come with them. */
static int take_descriptors(int socket, int *descriptors, size_t room, int flags, struct parcel *parcel)
{
	pack(parcel, 63);
	parcel->message.msg_controllen = room;
	check(recvmsg(socket, &parcel->message, flags) >= 0);
	if (parcel->message.msg_controllen == 0)
		return 0;
	check(parcel->control.first.cmsg_type == SCM_RIGHTS && parcel->control.first.cmsg_level == SOL_SOCKET);
	int count = (parcel->control.first.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(descriptors, CMSG_DATA(&parcel->control.first), count * sizeof(int));
	return count;
}

static void descriptors(void)
{
	int at, pair[2], ends[2], got[300];
	struct parcel parcel;
	for (at = 0; at < 3; at++) {
		check(socketpair(AF_UNIX, (int[]){SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}[at], 0, pair) == 0 && pipe(ends) == 0);
		send_descriptors(pair[0], ends, 2, "pipe");
		check(close(ends[0]) == 0 && close(ends[1]) == 0);
		check(take_descriptors(pair[1], got, sizeof parcel.control, MSG_PEEK, &parcel) == 2);
		check(close(got[0]) == 0 && close(got[1]) == 0);
		check(take_descriptors(pair[1], got, sizeof parcel.control, MSG_CMSG_CLOEXEC, &parcel) == 2);
		check(!memcmp(parcel.text, "pipe", 5) && fcntl(got[0], F_GETFD) == FD_CLOEXEC);
		check(write(got[1], "through", 7) == 7 && read(got[0], parcel.text, 9) == 7);
		/* No room for the second, then for none. */
		send_descriptors(pair[0], got, 2, "less");
		int one[2];
		check(take_descriptors(pair[1], one, CMSG_LEN(4), 0, &parcel) == 1 && (parcel.message.msg_flags & MSG_CTRUNC));
		check(close(one[0]) == 0);
		send_descriptors(pair[0], got, 2, "none");
		check(take_descriptors(pair[1], one, 0, 0, &parcel) == 0 && (parcel.message.msg_flags & MSG_CTRUNC));
		/* Received without asking: they are closed. */
		send_descriptors(pair[0], &got[1], 1, "read");
		check(close(got[1]) == 0 && read(pair[1], parcel.text, 9) == 4 && read(got[0], parcel.text, 9) == 0);
		/* Never received. */
		send_descriptors(pair[0], got, 1, "lost");
		check(close(got[0]) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
	}
	/* A read of a stream stops behind descriptors. */
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	check(write(pair[0], "ab", 2) == 2);
	send_descriptors(pair[0], pair, 1, "cd");
	check(write(pair[0], "ef", 2) == 2);
	check(take_descriptors(pair[1], got, sizeof parcel.control, 0, &parcel) == 1 && !strcmp(parcel.text, "abcd"));
	check(read(pair[1], parcel.text, 9) == 2 && close(got[0]) == 0);
}

static void descriptor_errors(void)
{
	int pair[2], many[254];
	struct parcel parcel;
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pack(&parcel, 1);
	enclose(&parcel, SCM_RIGHTS, &(int){77}, sizeof(int));
	EXPECT(EBADF, sendmsg(pair[0], &parcel.message, 0));
	for (int at = 0; at < 254; at++)
		many[at] = pair[0];
	enclose(&parcel, SCM_RIGHTS, many, sizeof many);
	EXPECT(EINVAL, sendmsg(pair[0], &parcel.message, 0));
	enclose(&parcel, SCM_RIGHTS, many, 253 * sizeof(int));
	check(sendmsg(pair[0], &parcel.message, 0) == 1);
	enclose(&parcel, 99, many, sizeof(int));
	EXPECT(EINVAL, sendmsg(pair[0], &parcel.message, 0));
	enclose(&parcel, SCM_RIGHTS, pair, sizeof(int));
	parcel.control.first.cmsg_len = 4;
	EXPECT(EINVAL, sendmsg(pair[0], &parcel.message, 0));
	parcel.control.first.cmsg_len = 4000;
	EXPECT(EINVAL, sendmsg(pair[0], &parcel.message, 0));
	parcel.message.msg_controllen = 1 << 20;
	EXPECT(ENOBUFS, sendmsg(pair[0], &parcel.message, 0));
	parcel.message.msg_controllen = 24;
	parcel.message.msg_control = bad;
	EXPECT(EFAULT, sendmsg(pair[0], &parcel.message, 0));
	pack(&parcel, 1);
	parcel.message.msg_controllen = 0;
	parcel.message.msg_iovlen = 1025;
	EXPECT(EMSGSIZE, sendmsg(pair[0], &parcel.message, 0));
	EXPECT(EFAULT, sendmsg(pair[0], bad, 0));
	EXPECT(EFAULT, recvmsg(pair[0], bad, 0));
}

/* Sockets that only queues hold, which nobody can reach: they go away, or no more could be sent in the end. */
static void cycles(void)
{
	struct rlimit few = {64, 64};
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (int round = 0; round < 500; round++) {
		int one[2], two[2];
		check(socketpair(AF_UNIX, SOCK_STREAM, 0, one) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, two) == 0);
		send_descriptors(one[0], &one[1], 1, "self");
		send_descriptors(two[0], one, 2, "others");
		send_descriptors(one[1], two, 2, "and back");
		check(close(one[0]) == 0 && close(one[1]) == 0 && close(two[0]) == 0 && close(two[1]) == 0);
	}
	/* What can still be reached stays: in a queue in a queue. */
	int outer[2], inner[2], got[4];
	struct parcel parcel;
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, outer) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, inner) == 0);
	check(write(inner[0], "deep", 4) == 4);
	send_descriptors(outer[0], inner, 2, "in");
	check(close(inner[0]) == 0 && close(inner[1]) == 0);
	for (int round = 0; round < 20; round++) {
		int others[2];
		check(socketpair(AF_UNIX, SOCK_STREAM, 0, others) == 0 && close(others[0]) == 0 && close(others[1]) == 0);
	}
	check(take_descriptors(outer[1], got, sizeof parcel.control, 0, &parcel) == 2 && read(got[1], parcel.text, 9) == 4);
	/* A chain of sockets, each in the queue of the next, that falls at once. */
	int held[2], next[2];
	few.rlim_cur = 64;
	check(socketpair(AF_UNIX, SOCK_DGRAM, 0, held) == 0);
	for (int link = 0; link < 2; link++) {
		check(socketpair(AF_UNIX, SOCK_DGRAM, 0, next) == 0);
		send_descriptors(next[0], held, 2, "link");
		check(close(held[0]) == 0 && close(held[1]) == 0);
		held[0] = next[0];
		held[1] = next[1];
	}
	check(close(held[0]) == 0 && close(held[1]) == 0);
}

static void identities(void)
{
	int pair[2], on = 1;
	struct parcel parcel;
	struct ucred peer;
	socklen_t size = sizeof peer;
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	check(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == getpid() && peer.uid == getuid());
	check(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
	check(write(pair[0], "who", 3) == 3);
	pack(&parcel, 9);
	check(recvmsg(pair[1], &parcel.message, 0) == 3 && parcel.control.first.cmsg_type == SCM_CREDENTIALS);
	memcpy(&peer, CMSG_DATA(&parcel.control.first), sizeof peer);
	check(peer.pid == getpid() && peer.uid == getuid() && peer.gid == getgid());
	/* Another's words are for another call. */
	check(write(pair[0], "mine", 4) == 4);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0)
		_exit(write(pair[0], "yours", 5) != 5);
	int status;
	check(waitpid(child, &status, 0) == child && status == 0);
	pack(&parcel, 20);
	check(recvmsg(pair[1], &parcel.message, 0) == 4);
	pack(&parcel, 20);
	check(recvmsg(pair[1], &parcel.message, 0) == 5);
	memcpy(&peer, CMSG_DATA(&parcel.control.first), sizeof peer);
	check(peer.pid == child);
	/* Only root says that it is somebody else. */
	check(setresuid(1000, 1000, 1000) == 0);
	peer = (struct ucred){getpid(), 1000, getgid()};
	pack(&parcel, 1);
	enclose(&parcel, SCM_CREDENTIALS, &peer, sizeof peer);
	check(sendmsg(pair[0], &parcel.message, 0) == 1);
	peer.uid = 0;
	enclose(&parcel, SCM_CREDENTIALS, &peer, sizeof peer);
	EXPECT(EPERM, sendmsg(pair[0], &parcel.message, 0));
	peer.uid = 1000;
	peer.pid = 1;
	enclose(&parcel, SCM_CREDENTIALS, &peer, sizeof peer);
	EXPECT(EPERM, sendmsg(pair[0], &parcel.message, 0));
	enclose(&parcel, SCM_CREDENTIALS, &peer, 4);
	EXPECT(EINVAL, sendmsg(pair[0], &parcel.message, 0));
}

static void many(void)
{
	int pair[2];
	char texts[3][8] = {"one", "two", "three"}, found[4][8];
	struct iovec parts[4];
	struct mmsghdr messages[4];
	memset(messages, 0, sizeof messages);
	check(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	for (int at = 0; at < 3; at++) {
		parts[at] = (struct iovec){texts[at], strlen(texts[at])};
		messages[at].msg_hdr.msg_iov = &parts[at];
		messages[at].msg_hdr.msg_iovlen = 1;
	}
	check(sendmmsg(pair[0], messages, 3, 0) == 3 && messages[2].msg_len == 5);
	for (int at = 0; at < 4; at++) {
		parts[at] = (struct iovec){found[at], 8};
		messages[at].msg_hdr.msg_iov = &parts[at];
		messages[at].msg_hdr.msg_iovlen = 1;
	}
	check(recvmmsg(pair[1], messages, 4, MSG_WAITFORONE, NULL) == 3 && messages[1].msg_len == 3 && !memcmp(found[2], "three", 5));
	EXPECT(EAGAIN, recvmmsg(pair[1], messages, 4, MSG_DONTWAIT, NULL));
	EXPECT(EINVAL, recvmmsg(pair[1], messages, 4, 0, &(struct timespec){0, -1}));
	EXPECT(EFAULT, sendmmsg(pair[0], bad, 1, 0));
}

static void files(void)
{
	int pair[2], file = open("/tmp/content", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char text[32];
	off_t offset = 2;
	check(file >= 0 && write(file, "0123456789", 10) == 10 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	check(sendfile(pair[0], file, &offset, 5) == 5 && offset == 7 && read(pair[1], text, 32) == 5 && !memcmp(text, "23456", 5));
	/* By another name: what /proc tells of it. */
	char link[32], target[32];
	snprintf(link, sizeof link, "/proc/self/fd/%d", pair[0]);
	check(readlink(link, target, sizeof target) > 8 && !memcmp(target, "socket:[", 8));
	check(unlink("/tmp/content") == 0);
}
