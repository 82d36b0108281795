/* TCP and UDP over the loopback, call by call. Each part runs in a child of its own. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* No memory of ours. */
static void *volatile bad = (void *)8;
static struct sockaddr_in at(const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	check(inet_pton(AF_INET, host, &address.sin_addr) == 1);
	return address;
}

#define SIZE ((socklen_t)sizeof(struct sockaddr_in))

static short polled(int descriptor)
{
	struct pollfd one = {descriptor, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0};
	/* A little time: on Linux what was sent may be on its way. */
	check(poll(&one, 1, 100) >= 0);
	return one.revents;
}

static void settle(void)
{
	usleep(20000);
}

static int stream(void)
{
	int one = socket(AF_INET, SOCK_STREAM, 0);
	check(one >= 0);
	return one;
}

static int option(int socket, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	check(getsockopt(socket, level, name, &value, &size) == 0 && size == sizeof value);
	return value;
}

static void set(int socket, int level, int name, int value)
{
	check(setsockopt(socket, level, name, &value, sizeof value) == 0);
}

/* A listener on a port that was free. */
static int listener(struct sockaddr_in *address, int backlog)
{
	int one = stream();
	socklen_t size = SIZE;
	*address = at("127.0.0.1", 0);
	check(bind(one, (void *)address, SIZE) == 0 && listen(one, backlog) == 0);
	check(getsockname(one, (void *)address, &size) == 0 && size == SIZE && address->sin_port);
	return one;
}

static void connected(int *pair)
{
	struct sockaddr_in address;
	int one = listener(&address, 5);
	pair[0] = stream();
	check(connect(pair[0], (void *)&address, SIZE) == 0);
	pair[1] = accept(one, NULL, NULL);
	check(pair[1] >= 0 && close(one) == 0);
}

#include "endings.h"

static void making(void)
{
	struct sockaddr_in address = at("127.0.0.1", 0), found;
	socklen_t size = SIZE;
	EXPECT(EPROTONOSUPPORT, socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	EXPECT(EPROTONOSUPPORT, socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
	EXPECT(ESOCKTNOSUPPORT, socket(AF_INET, SOCK_SEQPACKET, 0));
	EXPECT(EINVAL, socket(AF_INET, SOCK_STREAM, 1000));
	int one = stream(), two = stream();
	check(option(one, SOL_SOCKET, SO_DOMAIN) == AF_INET && option(one, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP);
	check(polled(one) == (POLLOUT | POLLHUP));
	EXPECT(EINVAL, bind(one, (void *)&address, 8));
	address.sin_family = AF_INET6;
	EXPECT(EAFNOSUPPORT, bind(one, (void *)&address, SIZE));
	address = at("192.0.2.1", 0);
	EXPECT(EADDRNOTAVAIL, bind(one, (void *)&address, SIZE));
	EXPECT(ENOTCONN, getpeername(one, (void *)&found, &size));
	EXPECT(ENOTCONN, recv(one, &found, 1, 0));
	EXPECT(EPIPE, send(one, &found, 1, MSG_NOSIGNAL));
	EXPECT(EINVAL, accept(one, NULL, NULL));
	address = at("127.0.0.1", 0);
	check(bind(one, (void *)&address, SIZE) == 0);
	EXPECT(EINVAL, bind(one, (void *)&address, SIZE));
	check(getsockname(one, (void *)&address, &size) == 0 && ntohs(address.sin_port) >= 1024);
	EXPECT(EADDRINUSE, bind(two, (void *)&address, SIZE));
	found = at("0.0.0.0", ntohs(address.sin_port));
	EXPECT(EADDRINUSE, bind(two, (void *)&found, SIZE));
	EXPECT(ECONNREFUSED, connect(two, (void *)&address, SIZE));
	EXPECT(EOPNOTSUPP, listen(socket(AF_INET, SOCK_DGRAM, 0), 1));
	EXPECT(ENOTCONN, shutdown(stream(), SHUT_RD));
	check(setresuid(1000, 1000, 1000) == 0);
	address = at("127.0.0.1", 80);
	EXPECT(EACCES, bind(stream(), (void *)&address, SIZE));
}

static void sharing(void)
{
	struct sockaddr_in address;
	int one = listener(&address, 1), two = stream(), three = stream(), four = stream();
	set(two, SOL_SOCKET, SO_REUSEADDR, 1);
	EXPECT(EADDRINUSE, bind(two, (void *)&address, SIZE));
	check(close(one) == 0);
	/* Both may have it until one listens. */
	set(three, SOL_SOCKET, SO_REUSEADDR, 1);
	check(bind(two, (void *)&address, SIZE) == 0 && bind(three, (void *)&address, SIZE) == 0 && listen(two, 1) == 0);
	EXPECT(EADDRINUSE, listen(three, 1));
	set(four, SOL_SOCKET, SO_REUSEADDR, 1);
	EXPECT(EADDRINUSE, bind(four, (void *)&address, SIZE));
	int five = stream(), six = stream();
	socklen_t size = SIZE;
	set(five, SOL_SOCKET, SO_REUSEPORT, 1);
	set(six, SOL_SOCKET, SO_REUSEPORT, 1);
	address = at("127.0.0.1", 0);
	check(bind(five, (void *)&address, SIZE) == 0 && getsockname(five, (void *)&address, &size) == 0);
	check(listen(five, 1) == 0 && bind(six, (void *)&address, SIZE) == 0 && listen(six, 1) == 0);
}

static void streams(void)
{
	struct sockaddr_in address, own, peer;
	socklen_t size = SIZE;
	char text[32];
	int one = listener(&address, 5), pair[2] = {stream()};
	check(option(one, SOL_SOCKET, SO_ACCEPTCONN) == 1 && fcntl(one, F_SETFL, O_NONBLOCK) == 0);
	EXPECT(EAGAIN, accept(one, NULL, NULL));
	check(connect(pair[0], (void *)&address, SIZE) == 0 && polled(one) == POLLIN);
	EXPECT(EISCONN, connect(pair[0], (void *)&address, SIZE));
	pair[1] = accept4(one, (void *)&peer, &size, SOCK_CLOEXEC);
	check(pair[1] >= 0 && fcntl(pair[1], F_GETFL) == O_RDWR && getsockname(pair[0], (void *)&own, &size) == 0);
	check(own.sin_port == peer.sin_port && own.sin_addr.s_addr == peer.sin_addr.s_addr);
	check(getpeername(pair[0], (void *)&peer, &size) == 0 && peer.sin_port == address.sin_port);
	check(write(pair[0], "hello", 5) == 5 && recv(pair[1], text, 2, MSG_PEEK) == 2 && read(pair[1], text, 32) == 5);
	EXPECT(EAGAIN, recv(pair[1], text, 1, MSG_DONTWAIT));
	EXPECT(EINVAL, recv(pair[1], text, 1, MSG_OOB));
	check(sendto(pair[1], "back", 4, 0, (void *)&address, SIZE) == 4 && recv(pair[0], text, 4, MSG_WAITALL) == 4);
	/* Half an end. */
	check(shutdown(pair[0], SHUT_WR) == 0);
	check(polled(pair[1]) == (POLLIN | POLLOUT | POLLRDHUP) && read(pair[1], text, 9) == 0);
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	check(write(pair[1], "still", 5) == 5 && read(pair[0], text, 9) == 5 && close(pair[1]) == 0);
	settle();
	check(polled(pair[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP) && read(pair[0], text, 9) == 0);
	/* Closed while the other has more to say. */
	connected(pair);
	check(close(pair[1]) == 0);
	settle();
	check(read(pair[0], text, 9) == 0 && send(pair[0], "a", 1, MSG_NOSIGNAL) == 1);
	settle();
	EXPECT(EPIPE, send(pair[0], "a", 1, MSG_NOSIGNAL));
	/* Closed with something unread: a reset. */
	connected(pair);
	check(write(pair[0], "lost", 4) == 4 && write(pair[1], "seen", 4) == 4);
	settle();
	check(close(pair[1]) == 0);
	settle();
	check((polled(pair[0]) & (POLLERR | POLLHUP)) && read(pair[0], text, 9) == 4);
	EXPECT(ECONNRESET, read(pair[0], text, 9));
	check(read(pair[0], text, 9) == 0);
	/* Closed so that it is a reset. */
	connected(pair);
	check(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)) == 0 && close(pair[1]) == 0);
	settle();
	EXPECT(ECONNRESET, read(pair[0], text, 9));
	check(close(one) == 0);
}

static void not_waiting(void)
{
	struct sockaddr_in address, nobody = at("127.0.0.1", 1);
	int one = listener(&address, 5), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error;
	EXPECT(EINPROGRESS, connect(client, (void *)&address, SIZE));
	check((polled(client) & POLLOUT) && option(client, SOL_SOCKET, SO_ERROR) == 0);
	check(connect(client, (void *)&address, SIZE) == 0);
	EXPECT(EISCONN, connect(client, (void *)&address, SIZE));
	check(close(client) == 0 && close(accept(one, NULL, NULL)) == 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	EXPECT(EINPROGRESS, connect(client, (void *)&nobody, SIZE));
	error = polled(client);
	check((error & POLLERR) && (error & POLLHUP) && option(client, SOL_SOCKET, SO_ERROR) == ECONNREFUSED);
	check(option(client, SOL_SOCKET, SO_ERROR) == 0 && close(client) == 0);
	EXPECT(ECONNREFUSED, connect(stream(), (void *)&nobody, SIZE));
	/* More than the backlog: who comes too late connects when there is room. */
	int late[4], full = listener(&address, 1);
	for (int at = 0; at < 4; at++) {
		late[at] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		EXPECT(EINPROGRESS, connect(late[at], (void *)&address, SIZE));
	}
	settle();
	struct pollfd last = {late[3], POLLOUT, 0};
	check(poll(&last, 1, 0) == 0);
	EXPECT(EALREADY, connect(late[3], (void *)&address, SIZE));
	for (int at = 0; at < 4; at++)
		check(accept(full, NULL, NULL) >= 0);
	check(poll(&last, 1, 10000) == 1 && last.revents == POLLOUT && option(late[3], SOL_SOCKET, SO_ERROR) == 0);
}

static void options(void)
{
	int one = stream();
	check(option(one, IPPROTO_TCP, TCP_NODELAY) == 0);
	set(one, IPPROTO_TCP, TCP_NODELAY, 7);
	check(option(one, IPPROTO_TCP, TCP_NODELAY) == 1);
	set(one, SOL_SOCKET, SO_KEEPALIVE, 1);
	check(option(one, SOL_SOCKET, SO_KEEPALIVE) == 1);
	set(one, IPPROTO_TCP, TCP_KEEPIDLE, 100);
	check(option(one, IPPROTO_TCP, TCP_KEEPIDLE) == 100);
	EXPECT(EINVAL, setsockopt(one, IPPROTO_TCP, TCP_KEEPIDLE, &(int){0}, 4));
	EXPECT(EINVAL, setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &(int){1}, 2));
	EXPECT(ENOPROTOOPT, setsockopt(one, IPPROTO_TCP, 999, &(int){1}, 4));
	EXPECT(ENOPROTOOPT, setsockopt(one, SOL_SOCKET, 999, &(int){1}, 4));
	EXPECT(EFAULT, setsockopt(one, SOL_SOCKET, SO_REUSEADDR, bad, 4));
	set(one, IPPROTO_IP, IP_TOS, 0x10);
	check(option(one, IPPROTO_IP, IP_TOS) == 0x10);
	int local = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT(EOPNOTSUPP, setsockopt(local, IPPROTO_TCP, TCP_NODELAY, &(int){1}, 4));
	struct ifreq interface = {.ifr_name = "lo"};
	check(ioctl(one, SIOCGIFFLAGS, &interface) == 0 && (interface.ifr_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | IFF_LOOPBACK));
	check(ioctl(one, SIOCGIFINDEX, &interface) == 0 && interface.ifr_ifindex == 1);
	strcpy(interface.ifr_name, "eth9");
	EXPECT(ENODEV, ioctl(one, SIOCGIFFLAGS, &interface));
}

static void datagrams(void)
{
	struct sockaddr_in address = at("127.0.0.1", 0), from, nobody = at("127.0.0.1", 1);
	socklen_t size = SIZE;
	char text[32];
	int one = socket(AF_INET, SOCK_DGRAM, 0), two = socket(AF_INET, SOCK_DGRAM, 0), count;
	check(bind(one, (void *)&address, SIZE) == 0 && getsockname(one, (void *)&address, &size) == 0);
	check(polled(one) == POLLOUT);
	EXPECT(EDESTADDRREQ, send(two, "a", 1, 0));
	check(sendto(two, "hello", 5, 0, (void *)&address, SIZE) == 5 && sendto(two, "", 0, 0, (void *)&address, SIZE) == 0);
	check(ioctl(one, FIONREAD, &count) == 0 && count == 5);
	check(recvfrom(one, text, 2, MSG_TRUNC, (void *)&from, &size) == 5 && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	check(recv(one, text, 9, 0) == 0);
	check(sendto(one, "back", 4, 0, (void *)&from, SIZE) == 4 && recv(two, text, 9, 0) == 4);
	static char large[70000];
	EXPECT(EMSGSIZE, sendto(two, large, sizeof large, 0, (void *)&address, SIZE));
	/* To nobody: lost, and told to who is connected. */
	check(sendto(two, "a", 1, 0, (void *)&nobody, SIZE) == 1);
	check(connect(two, (void *)&nobody, SIZE) == 0 && send(two, "a", 1, 0) == 1);
	EXPECT(ECONNREFUSED, recv(two, text, 1, MSG_DONTWAIT));
	EXPECT(EAGAIN, recv(two, text, 1, MSG_DONTWAIT));
	check(connect(two, (void *)&(struct sockaddr){AF_UNSPEC}, sizeof(struct sockaddr)) == 0);
	EXPECT(EDESTADDRREQ, send(two, "a", 1, 0));
	/* Who is connected hears from its partner only. */
	int three = socket(AF_INET, SOCK_DGRAM, 0);
	check(connect(one, (void *)&from, SIZE) == 0 && sendto(three, "a", 1, 0, (void *)&address, SIZE) == 1);
	EXPECT(EAGAIN, recv(one, text, 1, MSG_DONTWAIT));
	from = at("192.0.2.1", 9);
	/* There is the loopback and nothing else. */
	check(recv(one, text, 1, MSG_DONTWAIT) == -1);
	/* What nobody receives is lost in the end, and holds nobody up. */
	int four = socket(AF_INET, SOCK_DGRAM, 0), kept = 0;
	address = at("127.0.0.1", 0);
	check(bind(four, (void *)&address, SIZE) == 0 && getsockname(four, (void *)&address, &size) == 0);
	for (int sent = 0; sent < 5000; sent++)
		check(sendto(three, large, 1000, 0, (void *)&address, SIZE) == 1000);
	while (recv(four, large, sizeof large, MSG_DONTWAIT) == 1000)
		kept++;
	check(kept > 10 && kept < 1000);
}

static void six(void)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT}, peer;
	socklen_t size = sizeof address;
	int one = socket(AF_INET6, SOCK_STREAM, 0), client = socket(AF_INET6, SOCK_STREAM, 0);
	check(bind(one, (void *)&address, size) == 0 && listen(one, 5) == 0 && getsockname(one, (void *)&address, &size) == 0);
	address.sin6_addr = in6addr_loopback;
	check(connect(client, (void *)&address, size) == 0);
	check(accept(one, (void *)&peer, &size) >= 0 && size == sizeof peer && IN6_IS_ADDR_LOOPBACK(&peer.sin6_addr));
	/* IPv4 comes in through the same door. */
	struct sockaddr_in four = at("127.0.0.1", ntohs(address.sin6_port));
	int other = stream(), accepted;
	EXPECT(EADDRINUSE, bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&four, SIZE));
	check(connect(other, (void *)&four, SIZE) == 0 && (accepted = accept(one, (void *)&peer, &size)) >= 0);
	check(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr) && peer.sin6_family == AF_INET6);
	char text[9];
	check(write(accepted, "six", 3) == 3 && read(other, text, 9) == 3);
	int only = socket(AF_INET6, SOCK_STREAM, 0);
	set(only, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	address.sin6_port = 0;
	address.sin6_addr = in6addr_any;
	check(bind(only, (void *)&address, size) == 0 && listen(only, 1) == 0 && getsockname(only, (void *)&address, &size) == 0);
	four.sin_port = address.sin6_port;
	EXPECT(ECONNREFUSED, connect(stream(), (void *)&four, SIZE));
}

int main(void)
{
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	RUN(making);
	RUN(sharing);
	RUN(streams);
	RUN(not_waiting);
	RUN(options);
	RUN(datagrams);
	RUN(six);
	RUN(resets);
	RUN(own_ends);
	RUN(unconnected);
	RUN(elsewhere);
	RUN(shared_ports);
	RUN(messages);
	printf("ok\n");
	return 0;
}
