/* The lines of ERRORS in the manual pages of the memory calls that memory-calls has not got, because they need a setting of their own: as
 * many mappings as there may be, limits of memory, locked memory, files that end, keys. Each part runs in a child of its own.
 * docs/guide/errors.md says which line is checked where. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define MOST_MAPPINGS 65530
#define KEYS 16


/* A file of so many pages, mapped for one page more. */
static char *file_with_end(size_t pages, int protection, int flags, int *file)
{
	*file = syscall(SYS_memfd_create, "memory-errors", 0);
	check(*file >= 0 && ftruncate(*file, pages * PAGE) == 0);
	char *memory = mmap(NULL, (pages + 1) * PAGE, protection, flags, *file, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static void set_limit(int which, rlim_t value)
{
	struct rlimit limit;
	check(getrlimit(which, &limit) == 0);
	limit.rlim_cur = value;
	check(setrlimit(which, &limit) == 0);
}

/* Each call that would make one mapping into several, when there are as many as there may be. */
static void too_many_mappings(void)
{
	char *locked = fresh(3, READ_WRITE, MAP_PRIVATE), *whole = fresh(3, READ_WRITE, MAP_SHARED), *movable = fresh(1, PROT_READ, MAP_SHARED);
	check(mlock(locked, 3 * PAGE) == 0);
	char *many = fresh(MOST_MAPPINGS + 2, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
	size_t page = 1;
	while (page < MOST_MAPPINGS && mprotect(many + page * PAGE, PAGE, PROT_READ) == 0)
		page += 2;
	check(errno == ENOMEM && page > MOST_MAPPINGS - 200 && page < MOST_MAPPINGS);
	int more = 0;
	while (more < 10 && mmap(NULL, PAGE, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		more++;
	check(errno == ENOMEM && more < 10);
	EXPECT(ENOMEM, mmap(NULL, PAGE, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	EXPECT(ENOMEM, mprotect(whole + PAGE, PAGE, PROT_READ));
	EXPECT(ENOMEM, syscall(SYS_pkey_mprotect, whole + PAGE, PAGE, PROT_READ, -1));
	EXPECT(ENOMEM, munmap(whole + PAGE, PAGE));
	EXPECT(ENOMEM, mlock(whole + PAGE, PAGE));
	EXPECT(ENOMEM, syscall(SYS_mlock2, whole + PAGE, PAGE, 1));
	EXPECT(ENOMEM, munlock(locked + PAGE, PAGE));
	EXPECT(ENOMEM, mremap(movable, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT(ENOMEM, mremap(movable, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
	EXPECT(EAGAIN, madvise(whole + PAGE, PAGE, MADV_DONTFORK));
	/* What was refused changed nothing, and what needs no further mapping goes on. */
	whole[PAGE] = locked[PAGE] = 1;
	EXPECT(0, mprotect(whole, 3 * PAGE, PROT_READ));
	EXPECT(0, munmap(many, (MOST_MAPPINGS + 2) * PAGE));
	EXPECT(0, mprotect(whole + PAGE, PAGE, READ_WRITE));
}

static void limits_of_memory(void)
{
	char *memory = fresh(2, READ_WRITE, MAP_PRIVATE), *end = sbrk(0);
	set_limit(RLIMIT_DATA, PAGE);
	EXPECT(ENOMEM, mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	EXPECT(ENOMEM, mremap(memory, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	check(syscall(SYS_brk, end + PAGE) == (long)end);
	EXPECT(0, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	EXPECT(0, mmap(NULL, PAGE, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	char *data_to_be = fresh(1, PROT_READ, MAP_PRIVATE);
	EXPECT(ENOMEM, mprotect(data_to_be, PAGE, READ_WRITE));
	char *shared = fresh(1, PROT_READ, MAP_SHARED);
	EXPECT(0, mprotect(shared, PAGE, READ_WRITE));
	set_limit(RLIMIT_DATA, RLIM_INFINITY);
	set_limit(RLIMIT_AS, PAGE);
	EXPECT(ENOMEM, mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	EXPECT(ENOMEM, mremap(memory, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	EXPECT(ENOMEM, mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
	check(syscall(SYS_brk, end + PAGE) == (long)end);
	EXPECT(0, mremap(memory, 2 * PAGE, PAGE, 0));
	set_limit(RLIMIT_AS, RLIM_INFINITY);
	check(syscall(SYS_brk, end + PAGE) == (long)end + (long)PAGE);
	/* More than the machine could ever give. */
	EXPECT(ENOMEM, mmap(NULL, 1UL << 46, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void moving(void)
{
	int file;
	char *memory = fresh(4, READ_WRITE, MAP_PRIVATE), *shared = file_with_end(2, READ_WRITE, MAP_SHARED, &file);
	EXPECT(EINVAL, mremap(memory, PAGE, PAGE, MREMAP_DONTUNMAP, 0));
	EXPECT(EINVAL, mremap(memory, 0, PAGE, 0));
	EXPECT(EINVAL, mremap(memory, 0, PAGE, MREMAP_MAYMOVE));
	/* The page says EINVAL; Linux finds no room. */
	EXPECT(ENOMEM, mremap(shared, 0, PAGE, 0));
	/* Since Linux 5.13 what is left behind may be of a file, which it then still shows. */
	shared[PAGE] = 5;
	char *moved = mremap(shared, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	check(moved != MAP_FAILED && moved != shared && moved[PAGE] == 5 && shared[PAGE] == 5);
	/* Mappings that touch, but are not of one kind. */
	EXPECT(0, mprotect(memory + 2 * PAGE, 2 * PAGE, PROT_READ));
	EXPECT(EFAULT, mremap(memory, 4 * PAGE, 5 * PAGE, MREMAP_MAYMOVE));
	EXPECT(EFAULT, mremap(memory, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
	close(file);
}

static void advice(void)
{
	int file, other;
	char *shared = file_with_end(2, READ_WRITE, MAP_SHARED, &file), *private = file_with_end(2, READ_WRITE, MAP_PRIVATE, &other);
	char *memory = fresh(4, READ_WRITE, MAP_PRIVATE), *both = fresh(2, READ_WRITE, MAP_SHARED);
	EXPECT(EFAULT, madvise(shared, 3 * PAGE, MADV_POPULATE_READ));
	EXPECT(EFAULT, madvise(shared + 2 * PAGE, PAGE, MADV_POPULATE_WRITE));
	EXPECT(EFAULT, madvise(private + 2 * PAGE, PAGE, MADV_POPULATE_WRITE));
	EXPECT(0, madvise(shared, 2 * PAGE, MADV_POPULATE_WRITE));
	EXPECT(EINVAL, madvise(shared, PAGE, MADV_FREE));
	EXPECT(EINVAL, madvise(private, PAGE, MADV_FREE));
	EXPECT(EINVAL, madvise(both, PAGE, MADV_FREE));
	EXPECT(EINVAL, madvise(shared, PAGE, MADV_WIPEONFORK));
	EXPECT(EINVAL, madvise(private, PAGE, MADV_WIPEONFORK));
	EXPECT(EINVAL, madvise(both, PAGE, MADV_WIPEONFORK));
	EXPECT(0, mprotect(memory, PAGE, PROT_READ));
	EXPECT(EINVAL, madvise(memory, PAGE, MADV_POPULATE_WRITE));
	EXPECT(0, madvise(memory, PAGE, MADV_POPULATE_READ));
	EXPECT(0, mprotect(memory, PAGE, PROT_NONE));
	EXPECT(EINVAL, madvise(memory, PAGE, MADV_POPULATE_READ));
	EXPECT(EINVAL, madvise(memory, PAGE, MADV_POPULATE_WRITE));
	EXPECT(0, mlock(memory + 2 * PAGE, PAGE));
	EXPECT(EINVAL, madvise(memory + PAGE, 2 * PAGE, MADV_COLD));
	EXPECT(EINVAL, madvise(memory + PAGE, 2 * PAGE, MADV_PAGEOUT));
	EXPECT(EINVAL, madvise(memory + PAGE, 2 * PAGE, MADV_DONTNEED));
	EXPECT(0, madvise(memory + PAGE, PAGE, MADV_COLD));
	/* EBADF, and EINVAL of the next two, are answers of kernels without swap and without merging. */
	EXPECT(0, madvise(memory, 4 * PAGE, MADV_WILLNEED));
	EXPECT(0, madvise(memory, 4 * PAGE, MADV_MERGEABLE));
	EXPECT(0, madvise(memory, 4 * PAGE, MADV_UNMERGEABLE));
	EXPECT(0, munmap(memory + PAGE, PAGE));
	EXPECT(ENOMEM, madvise(memory, 3 * PAGE, MADV_DONTFORK));
	/* A kernel that can poison memory does so for its administrator only; one that cannot does not know the advice. */
	check(setuid(SOMEBODY) == 0);
	check(madvise(both, PAGE, 100) == -1 && (errno == EPERM || errno == EINVAL));
	close(file), close(other);
}

static void locking(void)
{
	int file;
	char *memory = fresh(4, READ_WRITE, MAP_PRIVATE), *shared = file_with_end(2, READ_WRITE, MAP_SHARED, &file);
	EXPECT(EINVAL, mlock(memory, -2 * PAGE));
	EXPECT(EINVAL, munlock(memory, -2 * PAGE));
	EXPECT(EINVAL, syscall(SYS_mlock2, memory, -2 * PAGE, 1));
	EXPECT(ENOMEM, syscall(SYS_mlock2, nowhere, PAGE, 1));
	/* The pages beyond the file's end cannot be had. */
	EXPECT(ENOMEM, mlock(shared, 3 * PAGE));
	EXPECT(0, munlock(shared, 3 * PAGE));
	EXPECT(EINVAL, mlockall(MCL_CURRENT | 8));
	EXPECT(0, mlock(memory + PAGE, PAGE));
	EXPECT(EBUSY, msync(memory, 4 * PAGE, MS_INVALIDATE));
	EXPECT(EBUSY, msync(memory + PAGE, PAGE, MS_INVALIDATE | MS_SYNC));
	EXPECT(0, msync(memory + 2 * PAGE, PAGE, MS_INVALIDATE));
	EXPECT(0, msync(memory, 4 * PAGE, MS_SYNC));
	/* A gap before the locked page is not what is said; one after it is never seen. */
	EXPECT(0, munmap(memory, PAGE));
	EXPECT(EBUSY, msync(memory, 4 * PAGE, MS_INVALIDATE));
	EXPECT(0, munlock(memory + PAGE, PAGE));
	EXPECT(ENOMEM, msync(memory, 4 * PAGE, MS_INVALIDATE));
	unsigned char resident[4];
	EXPECT(ENOMEM, mincore(memory, 4 * PAGE, resident));
	EXPECT(ENOMEM, mincore(memory + PAGE, -PAGE, resident));
	EXPECT(EFAULT, mincore(memory + PAGE, PAGE, (unsigned char *)memory));
	close(file);
}

static void mapping(void)
{
	int ends[2], file = syscall(SYS_memfd_create, "memory-errors", 0), read_only = open("/proc/self/exe", O_RDONLY);
	check(file >= 0 && ftruncate(file, PAGE) == 0 && pipe(ends) == 0 && read_only >= 0);
	EXPECT(ENODEV, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0));
	EXPECT(EACCES, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ends[1], 0));
	EXPECT(EACCES, mmap(NULL, PAGE, READ_WRITE, MAP_SHARED, read_only, 0));
	EXPECT(EINVAL, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 1));
	EXPECT(EINVAL, mmap(NULL, PAGE, PROT_READ, 0, file, 0));
	EXPECT(EINVAL, mmap(NULL, 0, PROT_READ, MAP_SHARED, file, 0));
	EXPECT(EOVERFLOW, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, -(off_t)PAGE));
	EXPECT(EOVERFLOW, mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, file, 0x7ffffffffffff000));
	EXPECT(EOPNOTSUPP, mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x1000000, file, 0));
	/* Long ignored: the file may be written to. */
	EXPECT(0, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, file, 0));
	check(pwrite(file, "x", 1, 0) == 1);
	/* Nobody set pages aside, if the kernel knows such pages at all. */
	check(mmap(NULL, PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED);
	check(errno == ENOMEM || errno == EINVAL);
	/* Nothing of /proc may be executed, nor mapped at all. */
	int status = open("/proc/self/status", O_RDONLY);
	check(status >= 0);
	EXPECT(ENODEV, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, status, 0));
	EXPECT(EPERM, mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, status, 0));
	close(ends[0]), close(ends[1]), close(file), close(read_only), close(status);
}

/* All keys there are: 15, or none on a CPU without; each can be given back once. */
static void keys(void)
{
	long had[KEYS], count = 0;
	char *memory = fresh(1, READ_WRITE, MAP_PRIVATE);
	while (count < KEYS && (had[count] = syscall(SYS_pkey_alloc, 0, 0)) >= 0)
		count++;
	check(errno == ENOSPC && (count == 0 || count == KEYS - 1));
	EXPECT(EINVAL, syscall(SYS_pkey_alloc, 0, 4));
	EXPECT(EINVAL, syscall(SYS_pkey_free, -1));
	EXPECT(EINVAL, syscall(SYS_pkey_free, KEYS));
	EXPECT(EINVAL, syscall(SYS_pkey_mprotect, memory, PAGE, PROT_READ, KEYS));
	for (long i = 0; i < count; i++) {
		EXPECT(0, syscall(SYS_pkey_mprotect, memory, PAGE, READ_WRITE, had[i]));
		EXPECT(0, syscall(SYS_pkey_mprotect, memory, PAGE, READ_WRITE, 0));
		EXPECT(0, syscall(SYS_pkey_free, had[i]));
		EXPECT(EINVAL, syscall(SYS_pkey_free, had[i]));
		EXPECT(EINVAL, syscall(SYS_pkey_mprotect, memory, PAGE, PROT_READ, had[i]));
	}
}

int main(void)
{
	RUN(moving);
	RUN(advice);
	RUN(locking);
	RUN(mapping);
	RUN(keys);
	RUN(limits_of_memory);
	RUN(too_many_mappings);
	puts("ok");
	return 0;
}
