/* The memory calls, as Linux answers them: each wrong argument with its errno, in Linux's order when several are wrong, and each
 * call with what it must do to memory. Passes on Linux as it does here.
 */
#define _GNU_SOURCE
#include "../include/expected-errors.h"
#include <linux/falloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FILE_NAME "/tmp/memory-calls"

static char *area; /* 16 pages of anonymous memory */
static void *const kernel_side = (void *)(1UL << 56); /* above user space with four levels of page tables and with five */
static unsigned char resident[64];
static int has_keys; /* the CPU has protection keys, and the kernel gives them */

static void *anonymous(void *address, size_t length, int protection, int flags)
{
	return mmap(address, length, protection, flags | MAP_ANONYMOUS, -1, 0);
}

static void check_mmap(void)
{
	EXPECT(EINVAL, anonymous(0, 0, READ_WRITE, MAP_PRIVATE));
	EXPECT(ENOMEM, anonymous(0, ~0UL, READ_WRITE, MAP_PRIVATE));
	EXPECT(ENOMEM, anonymous(0, 1UL << 47, READ_WRITE, MAP_PRIVATE));
	EXPECT(EINVAL, anonymous((void *)1, PAGE, READ_WRITE, MAP_PRIVATE | MAP_FIXED));
	EXPECT(ENOMEM, anonymous(kernel_side, PAGE, READ_WRITE, MAP_PRIVATE | MAP_FIXED));
	EXPECT(ENOMEM, anonymous((char *)kernel_side - PAGE, PAGE, READ_WRITE, MAP_PRIVATE | MAP_FIXED));
	EXPECT(EEXIST, anonymous(area, PAGE, READ_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE));
	EXPECT(EINVAL, anonymous(0, PAGE, READ_WRITE, 0));
	EXPECT(EINVAL, anonymous(0, PAGE, READ_WRITE, MAP_SHARED_VALIDATE));
	EXPECT(EINVAL, anonymous(0, PAGE, READ_WRITE, MAP_SHARED | MAP_GROWSDOWN));
	EXPECT(0, anonymous(0, PAGE, 0x7ffffff0, MAP_PRIVATE));
	EXPECT(EBADF, mmap(0, PAGE, READ_WRITE, MAP_PRIVATE, -1, 0));
	EXPECT(EBADF, mmap(0, PAGE, READ_WRITE, MAP_PRIVATE, 99, 0));
	EXPECT(EINVAL, mmap(0, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 1));
	EXPECT(EBADF, mmap(0, 0, READ_WRITE, MAP_PRIVATE, -1, 0));
	EXPECT(0, mmap(0, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, -(off_t)PAGE));
	EXPECT(EBADF, mmap(0, PAGE, READ_WRITE, MAP_SHARED_VALIDATE, 99, 0));
}

static void check_munmap(void)
{
	EXPECT(EINVAL, munmap(area + 1, PAGE));
	EXPECT(EINVAL, munmap(area, 0));
	EXPECT(EINVAL, munmap(kernel_side, PAGE));
	EXPECT(0, munmap(nowhere, PAGE));
	EXPECT(EINVAL, munmap(area, ~0UL));
	EXPECT(EINVAL, munmap(area, 1UL << 56));
}

static void check_mprotect(void)
{
	EXPECT(EINVAL, mprotect(area + 1, PAGE, READ_WRITE));
	EXPECT(0, mprotect(area, 0, READ_WRITE));
	EXPECT(0, mprotect(area, 0, 0xff00));
	EXPECT(EINVAL, mprotect(area, PAGE, 0xff00));
	EXPECT(ENOMEM, mprotect(nowhere, PAGE, READ_WRITE));
	EXPECT(ENOMEM, mprotect(area, ~0UL, READ_WRITE));
	EXPECT(ENOMEM, mprotect(area, -PAGE, READ_WRITE));
	EXPECT(EINVAL, mprotect(area, PAGE, PROT_GROWSDOWN | PROT_READ));
	EXPECT(EINVAL, mprotect(area, PAGE, PROT_GROWSUP | PROT_READ));
	EXPECT(EINVAL, mprotect(area, PAGE, PROT_GROWSUP | PROT_GROWSDOWN));
	EXPECT(0, mprotect(area, PAGE, PROT_READ | 8));
	EXPECT(0, mprotect(area, PAGE, READ_WRITE));
	EXPECT(ENOMEM, mprotect(kernel_side, PAGE, READ_WRITE));
}

static void check_mremap(void)
{
	EXPECT(EINVAL, mremap(area + 1, PAGE, PAGE, 0));
	EXPECT(EINVAL, mremap(area, PAGE, 0, 0));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, 8));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, MREMAP_FIXED));
	EXPECT(EINVAL, mremap(area, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
	EXPECT(EFAULT, mremap(nowhere, PAGE, PAGE, 0));
	EXPECT(EFAULT, mremap(nowhere, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT(EINVAL, mremap(area, 0, PAGE, MREMAP_MAYMOVE));
	EXPECT(EFAULT, mremap(area, 17 * PAGE, 18 * PAGE, MREMAP_MAYMOVE));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, area));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, area + 1));
	EXPECT(EINVAL, mremap(area, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, area + PAGE));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, kernel_side));
	EXPECT(ENOMEM, mremap(area, PAGE, 2 * PAGE, 0));
	EXPECT(EINVAL, mremap(area, PAGE, ~0UL, MREMAP_MAYMOVE));
	EXPECT(ENOMEM, mremap(area, PAGE, 1UL << 46, MREMAP_MAYMOVE));
	EXPECT(EINVAL, mremap(area, -PAGE, PAGE, MREMAP_MAYMOVE));
	EXPECT(0, mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
	EXPECT(EINVAL, mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 1));
}

static void check_madvise(void)
{
	EXPECT(EINVAL, madvise(area + 1, PAGE, MADV_DONTNEED));
	EXPECT(0, madvise(area, 0, MADV_DONTNEED));
	EXPECT(EINVAL, madvise(area, 0, 77));
	EXPECT(EINVAL, madvise(area + 1, 0, MADV_DONTNEED));
	EXPECT(ENOMEM, madvise(nowhere, PAGE, MADV_DONTNEED));
	EXPECT(EINVAL, madvise(area, ~0UL, MADV_DONTNEED));
	EXPECT(EINVAL, madvise(area, -PAGE, MADV_DONTNEED));
	EXPECT(EINVAL, madvise(area, PAGE, 77));
	EXPECT(ENOMEM, madvise(nowhere, PAGE, MADV_NORMAL));
	EXPECT(ENOMEM, madvise(nowhere, PAGE, MADV_POPULATE_READ));
	EXPECT(ENOMEM, madvise(nowhere, PAGE, MADV_WILLNEED));
}

static void check_mincore(void)
{
	EXPECT(EINVAL, mincore(area + 1, PAGE, resident));
	EXPECT(0, mincore(area, 0, resident));
	EXPECT(ENOMEM, mincore(nowhere, PAGE, resident));
	EXPECT(EFAULT, mincore(area, PAGE, (void *)8));
	EXPECT(ENOMEM, mincore(area, ~0UL, resident));
	EXPECT(EFAULT, mincore(area, PAGE, (unsigned char *)kernel_side));
}

static void check_msync(void)
{
	EXPECT(EINVAL, msync(area + 1, PAGE, MS_SYNC));
	EXPECT(EINVAL, msync(area, PAGE, MS_SYNC | MS_ASYNC));
	EXPECT(EINVAL, msync(area, PAGE, 64));
	EXPECT(0, msync(area, PAGE, 0));
	EXPECT(ENOMEM, msync(nowhere, PAGE, MS_SYNC));
	EXPECT(0, msync(area, 0, MS_SYNC));
	EXPECT(0, msync(area, PAGE, MS_INVALIDATE));
	EXPECT(0, msync(area, ~0UL, MS_SYNC));
	EXPECT(ENOMEM, msync(area, -PAGE, MS_SYNC));
}

static void check_mlock(void)
{
	EXPECT(0, mlock(area, PAGE));
	EXPECT(ENOMEM, mlock(nowhere, PAGE));
	EXPECT(0, mlock(area + 5, 0));
	EXPECT(0, mlock(area, ~0UL));
	EXPECT(0, munlock(area, PAGE));
	EXPECT(ENOMEM, munlock(nowhere, PAGE));
	EXPECT(EINVAL, syscall(SYS_mlock2, area, PAGE, 2));
	EXPECT(0, syscall(SYS_mlock2, area, PAGE, 1));
	EXPECT(0, munlock(area, PAGE));
	EXPECT(EINVAL, mlockall(0));
	EXPECT(EINVAL, mlockall(4));
	EXPECT(EINVAL, mlockall(8));
	EXPECT(0, munlockall());
}

/* A key that was not had is refused everywhere; where the CPU has none, none can be had. */
static void check_keys(void)
{
	EXPECT(EINVAL, syscall(SYS_pkey_alloc, 1, 0));
	EXPECT(EINVAL, syscall(SYS_pkey_alloc, 0, 4));
	EXPECT(EINVAL, syscall(SYS_pkey_free, 7));
	EXPECT(EINVAL, syscall(SYS_pkey_mprotect, area + 1, PAGE, PROT_READ, -1));
	EXPECT(EINVAL, syscall(SYS_pkey_mprotect, area, PAGE, 64, -1));
	EXPECT(EINVAL, syscall(SYS_pkey_mprotect, area, PAGE, PROT_READ, 7));
	EXPECT(ENOMEM, syscall(SYS_pkey_mprotect, nowhere, PAGE, PROT_READ, -1));
	EXPECT(0, syscall(SYS_pkey_mprotect, area, 0, PROT_READ, 7));
	EXPECT(0, syscall(SYS_pkey_mprotect, area, PAGE, PROT_READ | PROT_WRITE, -1));
	long key = syscall(SYS_pkey_alloc, 0, 0);
	check(key > 0 || (key == -1 && errno == ENOSPC));
	has_keys = key > 0;
}

/* ---- what accesses find: the signal and its code, or 0 ---- */

static sigjmp_buf back;
static volatile int signal_seen;

static void on_fault(int number, siginfo_t *information, void *context)
{
	(void)context;
	signal_seen = number * 100 + information->si_code;
	siglongjmp(back, 1);
}

#define MAPPING_ERROR (SIGSEGV * 100 + SEGV_MAPERR)
#define ACCESS_ERROR (SIGSEGV * 100 + SEGV_ACCERR)
#define KEY_ERROR (SIGSEGV * 100 + SEGV_PKUERR)
#define BEYOND_END (SIGBUS * 100 + BUS_ADRERR)

static int load(volatile char *address)
{
	signal_seen = 0;
	if (!sigsetjmp(back, 1))
		(void)*address;
	return signal_seen;
}

static int store(volatile char *address)
{
	signal_seen = 0;
	if (!sigsetjmp(back, 1))
		*address = 77;
	return signal_seen;
}

static void rights(void)
{
	char *memory = fresh(2, READ_WRITE, MAP_PRIVATE);
	check(load((char *)16) == MAPPING_ERROR && store((char *)0xffff800000000000) == MAPPING_ERROR);
	check(mprotect(memory, PAGE, PROT_READ) == 0 && load(memory) == 0 && store(memory) == ACCESS_ERROR);
	check(mprotect(memory, PAGE, PROT_NONE) == 0 && load(memory) == ACCESS_ERROR);
	check(mprotect(memory, PAGE, PROT_WRITE) == 0 && load(memory) == 0 && store(memory) == 0);
	/* Linux takes a key for what may only be executed. */
	check(mprotect(memory, PAGE, PROT_EXEC) == 0 && load(memory) == (has_keys ? KEY_ERROR : 0));
	check(store(memory) == (has_keys ? KEY_ERROR : ACCESS_ERROR));
	check(mprotect(memory, PAGE, PROT_READ) == 0 && memory[0] == 77);
}

static void moves(void)
{
	char *memory = fresh(8, READ_WRITE, MAP_PRIVATE);
	for (int page = 0; page < 8; page++)
		memory[page * PAGE] = page + 1;
	char *grown = mremap(memory, 8 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	check(grown != MAP_FAILED && grown[7 * PAGE] == 8 && grown[63 * PAGE] == 0);
	check(mremap(grown, 64 * PAGE, 4 * PAGE, 0) == grown && grown[3 * PAGE] == 4 && load(grown + 4 * PAGE) == MAPPING_ERROR);
	char *moved = mremap(grown, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	check(moved != MAP_FAILED && moved[3 * PAGE] == 4 && grown[3 * PAGE] == 0);
	char *shared = fresh(2, READ_WRITE, MAP_SHARED);
	shared[PAGE] = 5;
	char *twin = mremap(shared, 0, 2 * PAGE, MREMAP_MAYMOVE);
	check(twin != MAP_FAILED && twin[PAGE] == 5);
	twin[PAGE] = 6;
	check(shared[PAGE] == 6);
}

static void children(void)
{
	char *wiped = fresh(1, READ_WRITE, MAP_PRIVATE), *absent = fresh(1, READ_WRITE, MAP_PRIVATE), *private = fresh(1, READ_WRITE, MAP_PRIVATE);
	char *shared = fresh(1, READ_WRITE, MAP_SHARED);
	*wiped = *absent = *private = *shared = 1;
	check(madvise(wiped, PAGE, MADV_WIPEONFORK) == 0 && madvise(absent, PAGE, MADV_DONTFORK) == 0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		int right = *wiped == 0 && load(absent) == MAPPING_ERROR && *private == 1 && *shared == 1;
		*private = *shared = 2;
		_exit(!right);
	}
	int status;
	check(waitpid(child, &status, 0) == child && status == 0);
	check(*wiped == 1 && *absent == 1 && *private == 1 && *shared == 2);
}

static void files(void)
{
	mkdir("/tmp", 0777);
	int file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(file >= 0 && ftruncate(file, 4 * PAGE) == 0);
	char *shared = mmap(0, 5 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	char *private = mmap(0, 4 * PAGE, READ_WRITE, MAP_PRIVATE, file, 0);
	check(shared != MAP_FAILED && private != MAP_FAILED && load(shared + 4 * PAGE) == BEYOND_END);
	shared[0] = 1, shared[3 * PAGE] = 4, private[3 * PAGE] = 6;
	char byte;
	check(pread(file, &byte, 1, 3 * PAGE) == 1 && byte == 4);
	/* The file grows shorter: its pages go out of the mappings, private copies too, and come back as zeroes. */
	check(ftruncate(file, PAGE) == 0 && load(shared) == 0);
	check(load(shared + 3 * PAGE) == BEYOND_END && load(private + 3 * PAGE) == BEYOND_END);
	check(ftruncate(file, 4 * PAGE) == 0 && shared[3 * PAGE] == 0 && private[3 * PAGE] == 0);
	shared[3 * PAGE] = 9;
	check(pread(file, &byte, 1, 3 * PAGE) == 1 && byte == 9 && private[3 * PAGE] == 9);
	close(file);
	file = open(FILE_NAME, O_RDONLY);
	EXPECT(EACCES, mmap(0, PAGE, READ_WRITE, MAP_SHARED, file, 0));
	EXPECT(0, mmap(0, PAGE, READ_WRITE, MAP_PRIVATE, file, 0));
	char *read_only = mmap(0, PAGE, PROT_READ, MAP_SHARED, file, 0);
	EXPECT(EACCES, mprotect(read_only, PAGE, READ_WRITE));
	close(file);
	file = open(FILE_NAME, O_WRONLY);
	EXPECT(EACCES, mmap(0, PAGE, PROT_READ, MAP_PRIVATE, file, 0));
	close(file);
	file = open(FILE_NAME, O_PATH);
	EXPECT(EBADF, mmap(0, PAGE, PROT_READ, MAP_PRIVATE, file, 0));
	close(file);
	file = open("/tmp", O_RDONLY);
	EXPECT(ENODEV, mmap(0, PAGE, PROT_READ, MAP_PRIVATE, file, 0));
	close(file);
	unlink(FILE_NAME);
}

static long blocks(int file)
{
	struct stat status;
	check(fstat(file, &status) == 0);
	return status.st_blocks;
}

static void storage_errors(int file)
{
	const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int ends[2], read_only = open("/proc/self/exe", O_RDONLY), null = open("/dev/null", O_RDWR);
	check(pipe(ends) == 0 && read_only >= 0 && null >= 0);
	EXPECT(EBADF, fallocate(-1, 0, 0, PAGE));
	EXPECT(EBADF, fallocate(read_only, 0, 0, PAGE));
	EXPECT(EBADF, fallocate(read_only, hole, 0, PAGE));
	EXPECT(EINVAL, fallocate(file, 0, 0, 0));
	EXPECT(EINVAL, fallocate(file, 0, -1, PAGE));
	EXPECT(EINVAL, fallocate(file, 0, 0, -1));
	EXPECT(EFBIG, fallocate(file, 0, 0x7ffffffffffff000, 0x7ffffffffffff000));
	EXPECT(EOPNOTSUPP, fallocate(file, FALLOC_FL_PUNCH_HOLE, 0, PAGE));
	EXPECT(EOPNOTSUPP, fallocate(file, hole | FALLOC_FL_ZERO_RANGE, 0, PAGE));
	EXPECT(EOPNOTSUPP, fallocate(file, 0x1000, 0, PAGE));
	EXPECT(EOPNOTSUPP, fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE));
	EXPECT(EINVAL, fallocate(file, FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT(EINVAL, fallocate(file, FALLOC_FL_INSERT_RANGE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT(ESPIPE, fallocate(ends[1], 0, 0, PAGE));
	EXPECT(ENODEV, fallocate(null, 0, 0, PAGE));
	close(ends[0]), close(ends[1]), close(read_only), close(null);
}

/* Storage is given to a file and taken out of its middle, whatever is mapped of it. */
static void holes(void)
{
	const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int file = syscall(SYS_memfd_create, "holes", 0);
	check(file >= 0);
	storage_errors(file);
	check(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 4 * PAGE) == 0 && lseek(file, 0, SEEK_END) == 0 && blocks(file) == 32);
	check(fallocate(file, 0, PAGE, 7 * PAGE) == 0 && lseek(file, 0, SEEK_END) == 8 * (long)PAGE && blocks(file) == 64);
	char *shared = mmap(0, 8 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	char *other = mmap(0, 4 * PAGE, PROT_READ, MAP_SHARED, file, 2 * PAGE);
	char *private = mmap(0, 8 * PAGE, READ_WRITE, MAP_PRIVATE, file, 0), byte;
	check(shared != MAP_FAILED && other != MAP_FAILED && private != MAP_FAILED);
	for (int page = 0; page < 8; page++)
		shared[page * PAGE] = shared[page * PAGE + 100] = page + 1;
	private[3 * PAGE] = 50;
	check(other[PAGE] == 4 && private[4 * PAGE] == 5);
	check(fallocate(file, hole, 2 * PAGE, 3 * PAGE) == 0 && blocks(file) == 40 && lseek(file, 0, SEEK_END) == 8 * (long)PAGE);
	check(shared[2 * PAGE] == 0 && shared[4 * PAGE] == 0 && other[PAGE] == 0 && shared[5 * PAGE] == 6 && shared[PAGE] == 2);
	check(private[3 * PAGE] == 50 && private[4 * PAGE] == 0 && private[2 * PAGE] == 0);
	shared[3 * PAGE] = 7;
	check(pread(file, &byte, 1, 3 * PAGE) == 1 && byte == 7 && other[PAGE] == 7);
	/* Parts of pages: what lies around them stays. */
	check(fallocate(file, hole, 50, PAGE) == 0 && shared[0] == 1 && shared[100] == 0 && shared[PAGE] == 0 && shared[PAGE + 100] == 2);
	check(fallocate(file, hole, 6 * PAGE, 100 * PAGE) == 0 && shared[6 * PAGE] == 0 && lseek(file, 0, SEEK_END) == 8 * (long)PAGE);

	EXPECT(0, madvise(shared + 5 * PAGE, PAGE, MADV_REMOVE));
	check(shared[5 * PAGE] == 0 && pread(file, &byte, 1, 5 * PAGE) == 1 && byte == 0);
	EXPECT(EACCES, madvise(private, PAGE, MADV_REMOVE));
	EXPECT(EINVAL, madvise(area, PAGE, MADV_REMOVE));
	EXPECT(EINVAL, madvise(shared + 1, PAGE, MADV_REMOVE));
	EXPECT(ENOMEM, madvise(nowhere, PAGE, MADV_REMOVE));
	EXPECT(0, mlock(shared, PAGE));
	EXPECT(EINVAL, madvise(shared, PAGE, MADV_REMOVE));
	EXPECT(0, munlock(shared, PAGE));
	check(munmap(shared + 4 * PAGE, PAGE) == 0);
	shared[3 * PAGE] = shared[5 * PAGE] = 9;
	EXPECT(ENOMEM, madvise(shared + 3 * PAGE, 3 * PAGE, MADV_REMOVE));
	check(shared[3 * PAGE] == 0 && shared[5 * PAGE] == 0);
	char *anonymous_memory = fresh(4, READ_WRITE, MAP_SHARED);
	anonymous_memory[PAGE] = anonymous_memory[2 * PAGE] = 5;
	pid_t child = fork();
	check(child >= 0);
	if (child == 0)
		_exit(madvise(anonymous_memory + PAGE, PAGE, MADV_REMOVE) != 0);
	int status;
	check(waitpid(child, &status, 0) == child && status == 0);
	check(anonymous_memory[PAGE] == 0 && anonymous_memory[2 * PAGE] == 5);
	close(file);
}

static void residence(void)
{
	char *memory = fresh(4, READ_WRITE, MAP_PRIVATE);
	memory[PAGE] = 1;
	check(mincore(memory, 4 * PAGE, resident) == 0 && !(resident[0] & 1) && (resident[1] & 1) && !(resident[2] & 1));
	check(madvise(memory, 4 * PAGE, MADV_DONTNEED) == 0 && memory[PAGE] == 0);
	check(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE) == 0);
	check(mincore(memory, 4 * PAGE, resident) == 0 && (resident[0] & resident[3] & 1));
	long end = syscall(SYS_brk, 0);
	check(syscall(SYS_brk, 1) == end && syscall(SYS_brk, 1L << 46) == end);
	check(syscall(SYS_brk, end + PAGE) == end + (long)PAGE && syscall(SYS_brk, end) == end);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	check(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
	area = fresh(16, READ_WRITE, MAP_PRIVATE);
	check_mmap();
	check_munmap();
	check_mprotect();
	check_mremap();
	check_madvise();
	check_mincore();
	check_msync();
	check_mlock();
	check_keys();
	rights();
	moves();
	children();
	files();
	holes();
	residence();
	puts("ok");
	return 0;
}
