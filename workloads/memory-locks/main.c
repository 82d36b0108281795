/* How much memory may be locked: RLIMIT_MEMLOCK in every call that locks, for root (whom it does not bind) and for others, and what locking
 * does to pages. Each part runs in a child of its own, as rights that were given up do not come back. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif


static int resident(char *memory, size_t pages)
{
	unsigned char there[64];
	int count = 0;
	check(pages <= sizeof there && mincore(memory, pages * PAGE, there) == 0);
	for (size_t i = 0; i < pages; i++)
		count += there[i] & 1;
	return count;
}

/* Kilobytes that /proc says are locked. */
static long locked_kilobytes(void)
{
	char line[256];
	long value = -1;
	FILE *file = fopen("/proc/self/status", "r");
	check(file != NULL);
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "VmLck: %ld kB", &value) == 1)
			break;
	fclose(file);
	return value;
}

static void set_limit(size_t pages)
{
	struct rlimit limit;
	check(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	limit.rlim_cur = pages * PAGE;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	check(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

static void become_somebody(void)
{
	check(setuid(SOMEBODY) == 0);
}

static void root_is_not_bound(void)
{
	set_limit(0);
	char *memory = fresh(8, READ_WRITE, MAP_PRIVATE);
	EXPECT(0, mlock(memory, 8 * PAGE));
	check(resident(memory, 8) == 8 && locked_kilobytes() == 32);
	EXPECT(0, munlock(memory, 8 * PAGE));
	EXPECT(0, mlockall(MCL_FUTURE));
	memory = fresh(4, READ_WRITE, MAP_PRIVATE);
	check(resident(memory, 4) == 4 && locked_kilobytes() == 16);
	EXPECT(0, munlockall());
	check(locked_kilobytes() == 0);
	/* Dropping the right by itself is enough, whoever one is. */
	become_somebody();
	EXPECT(EPERM, mlock(memory, PAGE));
}

static void a_limit_of_nothing(void)
{
	set_limit(0);
	char *memory = fresh(2, READ_WRITE, MAP_PRIVATE);
	become_somebody();
	EXPECT(EPERM, mlock(memory, PAGE));
	EXPECT(EPERM, mlock(memory, 0));
	EXPECT(EPERM, mlock(nowhere, PAGE));
	EXPECT(EPERM, syscall(SYS_mlock2, memory, PAGE, MLOCK_ONFAULT));
	EXPECT(EINVAL, syscall(SYS_mlock2, memory, PAGE, 2));
	EXPECT(EPERM, mlockall(MCL_CURRENT));
	EXPECT(EPERM, mlockall(MCL_FUTURE));
	EXPECT(EINVAL, mlockall(MCL_ONFAULT));
	EXPECT(EPERM, (long)mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	EXPECT(EINVAL, (long)mmap(NULL, 0, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	EXPECT(0, munlock(memory, PAGE));
	EXPECT(0, munlockall());
}

static void a_limit_of_eight_pages(void)
{
	set_limit(8);
	become_somebody();
	char *memory = fresh(16, READ_WRITE, MAP_PRIVATE);
	EXPECT(ENOMEM, mlock(memory, 9 * PAGE));
	EXPECT(ENOMEM, mlock(memory + 1, 8 * PAGE));
	check(resident(memory, 16) == 0);
	EXPECT(0, mlock(memory, 6 * PAGE));
	check(resident(memory, 16) == 6);
	EXPECT(ENOMEM, mlock(memory + 8 * PAGE, 3 * PAGE));
	EXPECT(0, mlock(memory + 8 * PAGE, 2 * PAGE));
	/* What is locked already does not count twice. */
	EXPECT(0, mlock(memory, 6 * PAGE));
	EXPECT(ENOMEM, mlock(memory, 7 * PAGE));
	check(locked_kilobytes() == 32);
	EXPECT(EAGAIN, (long)mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	EXPECT(0, munlock(memory + 8 * PAGE, 8 * PAGE));
	char *locked = fresh(2, READ_WRITE, MAP_PRIVATE | MAP_LOCKED);
	check(resident(locked, 2) == 2);
	EXPECT(EAGAIN, (long)mmap(NULL, PAGE, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	EXPECT(0, munmap(locked, 2 * PAGE));
	check(locked_kilobytes() == 24);
	/* A hole: what lies before it is locked. */
	EXPECT(0, munlock(memory, 16 * PAGE));
	EXPECT(0, munmap(memory + 3 * PAGE, PAGE));
	EXPECT(ENOMEM, mlock(memory + 2 * PAGE, 4 * PAGE));
	check(locked_kilobytes() == 4);
	EXPECT(ENOMEM, munlock(memory + 2 * PAGE, 4 * PAGE));
	check(locked_kilobytes() == 0);
	EXPECT(ENOMEM, mlock(nowhere, PAGE));
	EXPECT(ENOMEM, mlockall(MCL_CURRENT));
	EXPECT(0, mlockall(MCL_FUTURE));
	EXPECT(EAGAIN, (long)mmap(NULL, 9 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	locked = fresh(5, READ_WRITE, MAP_PRIVATE);
	check(resident(locked, 5) == 5 && locked_kilobytes() == 20);
	char *end = sbrk(0);
	check(syscall(SYS_brk, end + 4 * PAGE) == (long)end);
	check(syscall(SYS_brk, end + 2 * PAGE) == (long)end + 2 * (long)PAGE && locked_kilobytes() == 28);
	EXPECT(0, munlockall());
	check(locked_kilobytes() == 0);
}

static void moving(void)
{
	set_limit(8);
	become_somebody();
	char *memory = fresh(32, PROT_NONE, MAP_PRIVATE);
	check(mmap(memory, 4 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
	EXPECT(0, munmap(memory + 4 * PAGE, 28 * PAGE));
	EXPECT(0, mlock(memory, 4 * PAGE));
	EXPECT(EAGAIN, (long)mremap(memory, 4 * PAGE, 9 * PAGE, MREMAP_MAYMOVE));
	EXPECT(EFAULT, (long)mremap(memory, 5 * PAGE, 9 * PAGE, MREMAP_MAYMOVE));
	memory = mremap(memory, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	check(memory != MAP_FAILED && resident(memory, 8) == 8 && locked_kilobytes() == 32);
	memory = mremap(memory, 8 * PAGE, 2 * PAGE, 0);
	check(memory != MAP_FAILED && locked_kilobytes() == 8);
	char *target = fresh(6, PROT_NONE, MAP_PRIVATE);
	memory = mremap(memory, 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
	check(memory == target && resident(memory, 6) == 6 && locked_kilobytes() == 24);
	/* What is left behind is not locked. */
	char *moved = mremap(memory, 6 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	check(moved != MAP_FAILED && locked_kilobytes() == 24);
	EXPECT(0, madvise(memory, 6 * PAGE, MADV_DONTNEED));
	EXPECT(EINVAL, madvise(moved, 6 * PAGE, MADV_DONTNEED));
	/* A child inherits neither locks nor their use. */
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(locked_kilobytes() == 0);
		EXPECT(0, mlock(moved, 6 * PAGE));
		_exit(0);
	}
	int status;
	check(waitpid(child, &status, 0) == child && status == 0);
}

static void on_fault(void)
{
	char *memory = fresh(8, READ_WRITE, MAP_PRIVATE);
	EXPECT(0, syscall(SYS_mlock2, memory, 8 * PAGE, MLOCK_ONFAULT));
	check(resident(memory, 8) == 0 && locked_kilobytes() == 32);
	memory[PAGE] = 1;
	check(resident(memory, 8) == 1);
	EXPECT(0, mlock(memory, 4 * PAGE));
	check(resident(memory, 8) == 4);
	EXPECT(EINVAL, madvise(memory, 8 * PAGE, MADV_DONTNEED));
	EXPECT(0, mlockall(MCL_FUTURE | MCL_ONFAULT));
	memory = fresh(8, READ_WRITE, MAP_PRIVATE);
	check(resident(memory, 8) == 0 && locked_kilobytes() == 64);
	memory = mremap(memory, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	check(memory != MAP_FAILED && resident(memory, 16) == 0 && locked_kilobytes() == 96);
	EXPECT(0, mlockall(MCL_CURRENT));
	check(resident(memory, 16) == 16);
	memory = fresh(8, READ_WRITE, MAP_PRIVATE);
	check(resident(memory, 8) == 0);
	EXPECT(0, munlockall());
}

static void rights(void)
{
	char *memory = fresh(4, PROT_NONE, MAP_PRIVATE);
	EXPECT(ENOMEM, mlock(memory, 4 * PAGE));
	check(resident(memory, 4) == 0 && locked_kilobytes() == 16);
	EXPECT(0, mprotect(memory, 2 * PAGE, READ_WRITE));
	check(resident(memory, 4) == 2);
	EXPECT(0, munlock(memory, 4 * PAGE));
	memory = fresh(4, PROT_READ, MAP_PRIVATE);
	EXPECT(0, mlock(memory, 4 * PAGE));
	check(resident(memory, 4) == 4);
}

static void no_capability(void)
{
	/* Root without the one right that matters is bound, too. */
	struct { uint32_t version; int process; } header = { 0x20080522, 0 };
	struct { uint32_t effective, permitted, inheritable; } sets[2];
	check(syscall(SYS_capget, &header, sets) == 0);
	sets[0].effective &= ~(1U << 14);
	check(syscall(SYS_capset, &header, sets) == 0);
	set_limit(2);
	char *memory = fresh(4, READ_WRITE, MAP_PRIVATE);
	EXPECT(ENOMEM, mlock(memory, 4 * PAGE));
	EXPECT(0, mlock(memory, 2 * PAGE));
	sets[0].effective |= 1U << 14;
	check(syscall(SYS_capset, &header, sets) == 0);
	EXPECT(0, mlock(memory, 4 * PAGE));
}

int main(void)
{
	RUN(root_is_not_bound);
	RUN(a_limit_of_nothing);
	RUN(a_limit_of_eight_pages);
	RUN(moving);
	RUN(on_fault);
	RUN(rights);
	RUN(no_capability);
	puts("ok");
	return 0;
}
