/* Input that no sane program gives: system calls with senseless arguments, and files that are almost programs.
 *
 * Every attempt runs in a child that has given up what it could harm, with a timer that ends blocking calls. Whatever the child does,
 * the kernel may answer with an error, a signal or an exit, but it must go on: the parent checks that the child can be killed, that
 * its own memory is untouched, and at the end that memory has come back. The attempts depend on --seed alone.
 *
 * Run it in a guest only: it makes calls that a host would rather not see.
 */
#include "../include/workload.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull >> 16;
}

static unsigned long below(unsigned long limit)
{
	return draw() % limit;
}

/* ---- children on a leash ---- */

static void tick(int signal)
{
	(void)signal;
}

/* In the child: no descriptors of ours, little memory, and a signal every two milliseconds that ends blocking calls. */
static void go_on_a_leash(void)
{
	setpgid(0, 0);
	int null = open("/dev/null", O_RDWR);
	for (int descriptor = 0; descriptor < 3; descriptor++)
		dup2(null, descriptor);
	struct rlimit limit = {96UL << 20, 96UL << 20};
	setrlimit(RLIMIT_AS, &limit);
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	struct sigaction action = {.sa_handler = tick};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = {{0, 2000}, {0, 2000}};
	setitimer(ITIMER_REAL, &often, NULL);
}

/* Waits for a child, at most half a second, then kills it; that must work. Gives the status. */
static int reap(pid_t pid)
{
	int status;
	for (int i = 0; i < 5000; i++) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid) {
			kill(-pid, SIGKILL);
			return status;
		}
		if (i == 250) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
		}
		usleep(2000);
	}
	fail("process %d does not die of SIGKILL", pid);
}

/* ---- system calls ---- */

static char *valid, *read_only, *unmapped;

/* Numbers whose purpose is to end, stop or signal others, which would end this test and prove nothing. */
static int is_left_out(long number)
{
	static const short out[] = {SYS_exit,	   SYS_exit_group, SYS_kill,	 SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
				    SYS_rt_tgsigqueueinfo, SYS_reboot, SYS_setpgid, SYS_setsid, SYS_pause, SYS_setitimer,
				    SYS_chroot, SYS_umount2, SYS_pivot_root, SYS_syslog};
	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		if (out[i] == number)
			return 1;
	return number == 424; /* pidfd_send_signal */
}

static unsigned long argument(void)
{
	static const unsigned long odd[] = {
		0, 1, 2, 3, 7, 8, 16, 63, 64, 255, 4095, 4096, 4097, 65536, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		~0UL, ~0UL - 1, ~0UL - 4095, 1UL << 63, (1UL << 63) - 1, 0x7ffffffff000, 0x7fffffffefff, 0x800000000000,
		0xffff800000000000, 0xffff800000100000, 0xffffffff80200000, 0xffffffffff600000, 0xfffffffffffff000,
	};
	switch (below(12)) {
	case 0:
	case 1:
	case 2:
		return (unsigned long)valid + below(8192);
	case 3:
		return (unsigned long)valid + 4 * PAGE - below(16); /* runs over the end */
	case 4:
		return (unsigned long)read_only + below(64);
	case 5:
		return (unsigned long)unmapped + below(64) * 8;
	case 6:
	case 7:
		return below(8); /* descriptors and small numbers */
	case 8:
		return draw() << 16 ^ draw();
	default:
		return odd[below(sizeof odd / sizeof *odd)];
	}
}

static long number(void)
{
	switch (below(20)) {
	case 0:
		return (long)(draw() << 20);
	case 1:
		return 0x40000000 | (long)below(512);
	case 2:
		return -(long)below(100);
	default:
		return (long)below(460);
	}
}

static void make_calls(long calls)
{
	pid_t self = getpid();
	for (long i = 0; i < calls; i++) {
		long which = number();
		if (is_left_out(which & 0xbfffffff))
			continue;
		for (int word = 0; word < 64; word++)
			((unsigned long *)valid)[below(4 * PAGE / 8)] = argument();
		syscall(which, argument(), argument(), argument(), argument(), argument(), argument());
		if (syscall(SYS_getpid) != self)
			_exit(0);
	}
	_exit(0);
}

static void hostile_calls(long rounds)
{
	valid = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(valid != MAP_FAILED);
	read_only = valid + 5 * PAGE;
	unmapped = valid + 7 * PAGE;
	check(mprotect(read_only, PAGE, PROT_READ) == 0 && munmap(valid + 4 * PAGE, PAGE) == 0);
	check(munmap(valid + 6 * PAGE, 2 * PAGE) == 0);
	long killed = 0;
	for (long round = 0; round < rounds; round++) {
		uint64_t seed = draw();
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			state = seed | 1;
			go_on_a_leash();
			make_calls(150);
		}
		killed += !WIFEXITED(reap(pid));
	}
	printf("children=%ld killed_by_signals=%ld\n", rounds, killed);
}

/* ---- files that are almost programs ---- */

static void hostile_programs(long rounds, const char *self)
{
	static unsigned char image[1 << 21];
	int file = open(self, O_RDONLY);
	check(file >= 0);
	ssize_t length = 0, got;
	while ((got = read(file, image + length, sizeof image - (size_t)length)) > 0)
		length += got;
	close(file);
	check(length > 4096);
	long refused = 0, ran = 0;
	for (long round = 0; round < rounds; round++) {
		char name[64];
		snprintf(name, sizeof name, "/tmp/almost-%ld", round);
		uint64_t seed = draw();
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			state = seed | 1;
			size_t kept = below(4) == 0 ? below((unsigned long)length) : (size_t)length;
			/* The ELF header and the program headers, which are all that the kernel reads. */
			for (unsigned long change = 0; change <= below(4); change++) {
				size_t at = below(4) == 0 ? below(64) : 64 + below(56 * 8);
				unsigned long value = argument();
				memcpy(image + at, &value, below(3) ? 1 + below(8) : 1);
			}
			if (below(2)) /* stays recognisable as ELF in most cases */
				memcpy(image, "\177ELF\2\1\1", 7);
			int output = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);
			if (output < 0 || write(output, image, kept) < 0)
				_exit(3);
			close(output);
			go_on_a_leash();
			char *arguments[] = {name, "--part", "nothing", NULL}, *environment[] = {NULL};
			execve(name, arguments, environment);
			_exit(4);
		}
		int status = reap(pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
			refused++;
		else
			ran++;
		unlink(name);
	}
	printf("programs=%ld refused=%ld started=%ld\n", rounds, refused, ran);
}

/* ---- more memory than there is ---- */

/* A child touches memory without end: the kernel must kill it, and nobody else, and have its memory back. */
static void hostile_appetite(long rounds)
{
	for (long round = 0; round < rounds; round++) {
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			const size_t length = 64UL << 30;
			char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			check(memory != MAP_FAILED);
			for (size_t at = 0; at < length; at += PAGE)
				((volatile char *)memory)[at] = 1;
			_exit(0);
		}
		int status;
		check(waitpid(pid, &status, 0) == pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fail("a process that took all memory ended with status %x", status);
	}
	printf("killed=%ld\n", rounds);
}

static long free_kilobytes(void)
{
	char text[2048];
	int file = open("/proc/meminfo", O_RDONLY);
	if (file < 0)
		return -1;
	ssize_t length = read(file, text, sizeof text - 1);
	close(file);
	text[length > 0 ? length : 0] = 0;
	char *place = strstr(text, "MemFree:");
	return place ? strtol(place + 8, NULL, 10) : -1;
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"part", "rounds", "seed", NULL};
	only_options(argc, argv, options);
	const char *part = word_option(argc, argv, "part", "");
	long rounds = number_option(argc, argv, "rounds", 1, 200);
	state = (uint64_t)number_option(argc, argv, "seed", 0, 1) * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	if (strcmp(part, "nothing") == 0)
		return 0;
	if (getpid() != 1 && access("/.ceasefire", F_OK) != 0)
		refuse("this program is meant for a guest of ceasefire only");
	long before = free_kilobytes();
	if (strcmp(part, "calls") == 0)
		hostile_calls(rounds);
	else if (strcmp(part, "programs") == 0)
		hostile_programs(rounds, access(argv[0], R_OK) == 0 ? argv[0] : "/proc/self/exe");
	else if (strcmp(part, "memory") == 0)
		hostile_appetite(rounds);
	else
		refuse("--part calls, --part memory or --part programs is needed");
	while (waitpid(-1, NULL, 0) > 0)
		;
	usleep(100000);
	long after = free_kilobytes();
	if (before >= 0 && before - after > 8192)
		fail("%ld KiB of memory did not come back", before - after);
	puts("ok");
	return 0;
}
