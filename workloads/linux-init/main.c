/* The first program on the Linux side: runs the packed program there and reports the way our own kernel does.
 *
 * It obeys the same orders (the files below /.ceasefire), speaks through the same debug ports, writes the same form of report and
 * switches the machine off in the same way, so that the host needs to know nothing about which kernel it has started:
 *
 *     port 0x400 log, 0x408 the program's output, 0x404 its errors, 0x406 the report, 0xf4 off
 *
 * The program runs as its only child, pinned nowhere, with pipes for output and errors that this process empties into the ports; a
 * serial console would be slow enough to change what is measured. The rows of /proc/interrupts are read just before the program
 * starts and just after it has ended. As process 1 it also reaps what the program leaves behind.
 *
 * Its very first act is to read the time stamp counter, which the emulator starts at zero: the boot time, firmware included.
 */
#include "peer.h"
#include <poll.h>
#include <signal.h>
#include <net/if.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>

int cpu_count;

void put(int port, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		outb((unsigned char)bytes[i], (unsigned short)port);
}

void print(int port, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	put(port, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

void give_up(const char *what)
{
	print(LOG, "linux-init: %s: %s\n", what, strerror(errno));
	outl(2, OFF);
	for (;;)
		pause();
}

/* ---- what is read from the kernel ---- */

size_t read_whole(const char *path, char *text, size_t room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	size_t length = 0;
	ssize_t got;
	while (length < room - 1 && (got = read(file, text + length, room - 1 - length)) > 0)
		length += (size_t)got;
	close(file);
	text[length] = 0;
	return length;
}

static unsigned long long free_bytes(void)
{
	static char text[8192];
	read_whole("/proc/meminfo", text, sizeof text);
	char *place = strstr(text, "MemFree:");
	return place ? strtoull(place + 8, NULL, 10) * 1024 : 0;
}

/* Ticks of the counter per nanosecond, from the kernel's own clock. */
static double measure_ticks(void)
{
	uint64_t clock = nanoseconds(), counter = ticks();
	while (nanoseconds() - clock < 5000000)
		relax();
	return (double)(ticks() - counter) / (double)(nanoseconds() - clock);
}

/* ---- the program ---- */

/* Cuts a text of NUL-separated words in place. */
static char **words_of(const char *path)
{
	static char text[2][1 << 20];
	static char *lists[2][1 << 15];
	static int used;
	char *start = text[used], **list = lists[used];
	used++;
	size_t length = read_whole(path, start, sizeof text[0]), count = 0;
	for (size_t at = 0; at < length && count < sizeof lists[0] / sizeof *lists[0] - 1; at += strlen(start + at) + 1)
		list[count++] = start + at;
	list[count] = NULL;
	return list;
}

static struct rusage used;

/* waitpid, adding up what those that are gone have used. */
static pid_t reap(pid_t pid, int *status, int options)
{
	struct rusage one;
	pid_t reaped = wait4(pid, status, options, &one);
	if (reaped > 0) {
		timeradd(&used.ru_utime, &one.ru_utime, &used.ru_utime);
		timeradd(&used.ru_stime, &one.ru_stime, &used.ru_stime);
	}
	return reaped;
}

static void program_ended(int status, int *result)
{
	read_counters(AFTER);
	stop_tracing();
	*result = status;
}

static void do_nothing(int signal)
{
	(void)signal;
}

/* SIG_BLOCK: the end of a child is noticed where `relay` waits, and nowhere else. SIG_UNBLOCK: as a program expects it. */
static void hear_of_children(int how)
{
	sigset_t children;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(how, &children, NULL);
	signal(SIGCHLD, how == SIG_BLOCK ? do_nothing : SIG_DFL);
}

static pid_t start(const int *output, const int *errors)
{
	static char directory[4096];
	char **arguments = words_of("/.ceasefire/arguments"), **environment = words_of("/.ceasefire/environment");
	if (!arguments[0])
		give_up("/.ceasefire/arguments");
	if (!read_whole("/.ceasefire/directory", directory, sizeof directory))
		strcpy(directory, "/");
	pid_t pid = fork();
	if (pid)
		return pid;
	int input = open("/.ceasefire/input", O_RDONLY);
	if (input < 0)
		input = open("/dev/null", O_RDONLY);
	dup2(input, 0);
	dup2(output[1], 1);
	dup2(errors[1], 2);
	hear_of_children(SIG_UNBLOCK);
	for (int descriptor = 3; descriptor < 32; descriptor++)
		close(descriptor);
	ioperm(0, 1024, 0);
	iopl(0);
	setsid();
	if (chdir(directory) != 0 || execve(arguments[0], arguments, environment) != 0)
		dprintf(2, "linux-init: %s: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

/* Empties the pipes into the ports until the program has ended and nothing is left in them. It sleeps until there is something to do: a
 * look every few milliseconds would take a CPU from the program again and again, which then is not interrupted meanwhile. */
static int relay(pid_t pid, int output, int errors)
{
	static const struct timespec at_once;
	sigset_t none;
	sigemptyset(&none);
	static char bytes[1 << 16];
	struct pollfd sources[2] = {{.fd = output, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
	static const int ports[2] = {OUTPUT, ERRORS};
	int status = 0, ended = 0;
	for (;;) {
		int moved = 0;
		ppoll(sources, 2, ended ? &at_once : NULL, &none);
		for (int i = 0; i < 2; i++) {
			ssize_t got = sources[i].fd >= 0 ? read(sources[i].fd, bytes, sizeof bytes) : -1;
			if (got > 0) {
				put(ports[i], bytes, (size_t)got);
				moved = 1;
			} else if (got == 0) {
				sources[i].fd = -1;
			}
		}
		if (ended && !moved)
			return status;
		int one;
		pid_t reaped;
		while ((reaped = reap(-1, &one, WNOHANG)) > 0)
			if (reaped == pid) {
				ended = 1;
				program_ended(one, &status);
			}
		if (sources[0].fd < 0 && sources[1].fd < 0 && !ended && reap(pid, &one, 0) == pid) {
			ended = 1;
			program_ended(one, &status);
		}
	}
}

/* ---- the report ---- */

void report_row(const char *group, const char *name, const long long *per_cpu, int count)
{
	static int rows;
	print(REPORT, "%s{\"group\":\"%s\",\"name\":\"%s\",\"per_cpu\":[", rows++ ? "," : "", group, name);
	for (int cpu = 0; cpu < count; cpu++)
		print(REPORT, "%s%lld", cpu ? "," : "", per_cpu[cpu]);
	print(REPORT, "]}");
}

static unsigned long long in_nanoseconds(struct timeval time)
{
	return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_usec * 1000;
}

static void report(int status, uint64_t program_start, uint64_t program_end, unsigned long long total, unsigned long long before,
		   unsigned long long after)
{
	print(REPORT, "{\"schema\":\"ceasefire.report/1\",\"exit\":{\"%s\":%d},\"cpus\":%d,\"mechanisms\":[],\"ledger\":[",
	      WIFSIGNALED(status) ? "signal" : "code", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), cpu_count);
	report_counters();
	report_flushes();
	print(REPORT,
	      "],\"unknown_system_calls\":[],\"clock\":{\"program_start\":%llu,\"program_end\":%llu},"
	      "\"memory\":{\"total\":%llu,\"free_at_start\":%llu,\"free_at_end\":%llu,\"kernel_image\":0},"
	      "\"processor_time\":{\"user\":%llu,\"system\":%llu}}",
	      (unsigned long long)program_start, (unsigned long long)program_end, total, before, after, in_nanoseconds(used.ru_utime),
	      in_nanoseconds(used.ru_stime));
}

/* The loopback is there from the start on our kernel. */
static void network(void)
{
	struct ifreq interface = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	if (any >= 0) {
		ioctl(any, SIOCSIFFLAGS, &interface);
		close(any);
	}
}

int main(void)
{
	uint64_t first = ticks();
	if (iopl(3) != 0)
		_exit(1);
	/* The host takes this for the sign that Linux has booted (protocol::LINUX_FIRST_WORDS). */
	print(LOG, "linux-init: ticks_at_start=%llu\n", (unsigned long long)first);
	static const char *const folders[] = {"/proc", "/sys", "/dev", "/tmp", "/dev/shm"};
	for (size_t i = 0; i < sizeof folders / sizeof *folders - 1; i++)
		mkdir(folders[i], 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) != 0)
		give_up("mount /proc");
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/shm", 0777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	network();
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	cpu_count = get_nprocs();
	if (cpu_count > MOST_CPUS)
		cpu_count = MOST_CPUS;
	prepare_disks();
	trace_flushes();

	int output[2], errors[2];
	if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
		give_up("pipes");
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	double rate = measure_ticks();
	struct sysinfo information;
	sysinfo(&information);
	unsigned long long before = free_bytes();
	read_counters(BEFORE);
	uint64_t program_start = ticks();
	hear_of_children(SIG_BLOCK);
	pid_t pid = start(output, errors);
	if (pid < 0)
		give_up("fork");
	close(output[1]);
	close(errors[1]);
	int status = relay(pid, output[0], errors[0]);
	uint64_t program_end = ticks();
	kill(-1, SIGKILL);
	int ignored;
	while (reap(-1, &ignored, 0) > 0)
		;
	report(status, (uint64_t)((double)program_start / rate), (uint64_t)((double)program_end / rate),
	       (unsigned long long)information.totalram * information.mem_unit, before, free_bytes());
	/* A machine that goes off keeps what was written. */
	sync();
	outl(1, OFF);
	for (;;)
		pause();
}
