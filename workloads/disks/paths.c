/* The paths to a disk's bytes: calls, shared and private mappings, of several processes. What one has written, all others see; and it is on
 * the disk in the end, whether or not anybody asked for that. Leaves /dev/vda in round 4.
 */
#include "disks.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint64_t size;
static unsigned char buffer[65536];
static sigjmp_buf aside;

static void step_aside(int signal)
{
	(void)signal;
	siglongjmp(aside, 1);
}

/* Whether an access there ends in SIGBUS. */
static int is_behind_the_end(volatile unsigned char *place)
{
	if (sigsetjmp(aside, 1))
		return 1;
	(void)*place;
	return 0;
}

static unsigned char *map(int disk, int protection, int flags)
{
	unsigned char *pages = mmap(NULL, size + PAGE, protection, flags, disk, 0);
	check(pages != MAP_FAILED);
	return pages;
}

/* Reads everything by calls. */
static void expect_all(int disk, int round)
{
	for (uint64_t at = 0; at < size;) {
		ssize_t got = pread(disk, buffer, sizeof buffer, (off_t)at);
		check(got > 0);
		expect(buffer, (size_t)got, at, round, "/dev/vda");
		at += (uint64_t)got;
	}
}

/* Stores, asks for it to be written, and stores again into the same pages, which are clean now. */
static void store_twice(int disk, unsigned char *shared, int round)
{
	for (int again = 0; again < 2; again++) {
		for (uint64_t at = 0; at < size; at += PAGE) {
			size_t length = size - at < PAGE ? (size_t)(size - at) : PAGE;
			/* First something else, then what is right. */
			fill(shared + at, length, again ? at : at + 8, again ? round : 77);
		}
		check(again ? fsync(disk) == 0 : msync(shared, size, MS_SYNC) == 0);
	}
	expect_all(disk, round);
}

/* Each page by a call or through the mapping, in turn. */
static void mix(int disk, unsigned char *shared, int round)
{
	for (uint64_t at = 0; at < size; at += PAGE) {
		size_t length = size - at < PAGE ? (size_t)(size - at) : PAGE;
		if (at / PAGE % 3 == 0) {
			fill(shared + at, length, at, round);
		} else {
			fill(buffer, length, at, round);
			/* In two parts, so that a page is never written whole. */
			check(pwrite(disk, buffer, 100, (off_t)at) == 100);
			check(pwrite(disk, buffer + 100, length - 100, (off_t)at + 100) == (ssize_t)(length - 100));
		}
	}
	expect(shared, size, 0, round, "the mapping of /dev/vda");
	expect_all(disk, round);
	check(msync(shared, size, MS_ASYNC) == 0);
}

static void private_copies(int disk, int round)
{
	unsigned char *private = map(disk, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	expect(private, size, 0, round, "the private mapping of /dev/vda");
	for (uint64_t at = 0; at < size; at += 2 * PAGE)
		memset(private + at, 255, 64);
	check(msync(private, size, MS_SYNC) == 0);
	expect_all(disk, round);
	check(private[0] == 255 && munmap(private, size + PAGE) == 0);
}

static void children(unsigned char *shared, int round)
{
	for (int child = 0; child < 3; child++) {
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			for (uint64_t at = (uint64_t)child * PAGE; at < size; at += 3 * PAGE)
				fill(shared + at, size - at < PAGE ? (size_t)(size - at) : PAGE, at, round);
			_exit(0);
		}
		int status;
		check(waitpid(pid, &status, 0) == pid && status == 0);
	}
	expect(shared, size, 0, round, "the mapping of /dev/vda");
}

void paths(void)
{
	int disk = open_disk("/dev/vda", O_RDWR, &size);
	signal(SIGBUS, step_aside);
	unsigned char *shared = map(disk, PROT_READ | PROT_WRITE, MAP_SHARED);
	expect(shared, size, 0, 0, "the mapping of /dev/vda");
	/* What the last page has behind the end is zero, and behind that page there is nothing. */
	uint64_t whole = (size + PAGE - 1) / PAGE * PAGE;
	for (uint64_t at = size; at < whole; at++)
		check(shared[at] == 0);
	check(is_behind_the_end(shared + whole) && !is_behind_the_end(shared + whole - 1));
	store_twice(disk, shared, 1);
	mix(disk, shared, 2);
	private_copies(disk, 2);
	children(shared, 3);
	check(msync(shared + PAGE, size - PAGE, MS_SYNC | MS_INVALIDATE) == 0);
	errno = 0;
	check(msync(shared + 1, PAGE, MS_SYNC) < 0 && errno == EINVAL);
	/* Nobody asks for what is stored now to be written. */
	for (uint64_t at = 0; at < size; at += PAGE)
		fill(shared + at, size - at < PAGE ? (size_t)(size - at) : PAGE, at, 4);
	close(disk);
	check(munmap(shared, size + PAGE) == 0);
	uint64_t same;
	disk = open_disk("/dev/vda", O_RDONLY, &same);
	check(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, disk, 0) == MAP_FAILED && errno == EACCES);
	expect_all(disk, 4);
	close(disk);
}
