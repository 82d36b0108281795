/* Each wrong argument with its errno, in Linux's order when several are wrong: the lines of ERRORS in userfaultfd(2) and
 * ioctl_userfaultfd(2), but for a full table of files (ENFILE) and a kernel without memory.
 */
#include "monitor.h"

static void *const kernel_side = (void *)(1UL << 63);
static void *volatile const bad = (void *)8;
static char *area; /* 16 pages of anonymous memory, the first 8 watched for missing pages */

#define SUPPORTED                                                                                                            \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |   \
	 UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_SIGBUS | UFFD_FEATURE_THREAD_ID |              \
	 UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_EXACT_ADDRESS | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

/* Runs a part in a child that is nobody. */
static void as_nobody(void (*part)(void))
{
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(setgid(65534) == 0 && setuid(65534) == 0);
		part();
		_exit(0);
	}
	int status;
	check(waitpid(child, &status, 0) == child && status == 0);
}

static void without_privilege(void)
{
	EXPECT(EPERM, userfaultfd(0));
	EXPECT(EPERM, userfaultfd(O_CLOEXEC | O_NONBLOCK));
	int monitor = userfaultfd(UFFD_USER_MODE_ONLY);
	check(monitor >= 0);
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK };
	EXPECT(EPERM, ioctl(monitor, UFFDIO_API, &api));
	check(api.api == 0 && api.features == 0 && api.ioctls == 0);
	api = (struct uffdio_api){ .api = UFFD_API };
	EXPECT(0, ioctl(monitor, UFFDIO_API, &api));
}

static void check_call(void)
{
	EXPECT(EINVAL, userfaultfd(2));
	EXPECT(EINVAL, userfaultfd(O_APPEND));
	struct rlimit old, none = { 0, 0 };
	check(getrlimit(RLIMIT_NOFILE, &old) == 0);
	none.rlim_max = old.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &none) == 0);
	EXPECT(EMFILE, userfaultfd(0));
	check(setrlimit(RLIMIT_NOFILE, &old) == 0);
	int monitor = userfaultfd(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	check(monitor >= 0 && fcntl(monitor, F_GETFD) == FD_CLOEXEC);
	check((fcntl(monitor, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK));
	close(monitor);
	monitor = userfaultfd(0);
	check(monitor >= 0 && fcntl(monitor, F_GETFD) == 0 && (fcntl(monitor, F_GETFL) & O_NONBLOCK) == 0);
	close(monitor);
	as_nobody(without_privilege);
}

/* Before the features are agreed upon. */
static void check_disabled(void)
{
	int monitor = userfaultfd(O_NONBLOCK);
	struct uffd_msg event;
	struct pollfd polled = { .fd = monitor, .events = POLLIN };
	EXPECT(EINVAL, read(monitor, &event, sizeof event));
	check(poll(&polled, 1, 0) == 1 && polled.revents == POLLERR);
	EXPECT(EINVAL, register_range(monitor, area, PAGE, MISSING, NULL));
	EXPECT(EINVAL, unregister_range(monitor, area, PAGE));
	EXPECT(EINVAL, wake(monitor, area, PAGE));
	EXPECT(EINVAL, copy_range(monitor, area, page_of(1), PAGE, 0));
	EXPECT(EINVAL, zero_range(monitor, area, PAGE, 0));
	EXPECT(EINVAL, guard_range(monitor, area, PAGE, 0));
	EXPECT(EINVAL, continue_range(monitor, area, PAGE, 0));
	EXPECT(EINVAL, ioctl(monitor, UFFDIO_REGISTER, bad));
	close(monitor);
}

static void check_api(void)
{
	int monitor = userfaultfd(0);
	struct uffdio_api api = { .api = 0, .features = 0, .ioctls = 5 };
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_API, bad));
	EXPECT(EINVAL, ioctl(monitor, UFFDIO_API, &api));
	check(api.api == 0 && api.features == 0 && api.ioctls == 0);
	api = (struct uffdio_api){ .api = UFFD_API, .features = 1ULL << 31 };
	EXPECT(EINVAL, ioctl(monitor, UFFDIO_API, &api));
	check(api.api == 0 && api.features == 0);
	api = (struct uffdio_api){ .api = UFFD_API, .features = 1ULL << 63 | UFFD_FEATURE_SIGBUS };
	EXPECT(EINVAL, ioctl(monitor, UFFDIO_API, &api));
	api = (struct uffdio_api){ .api = UFFD_API, .features = UFFD_FEATURE_THREAD_ID };
	EXPECT(0, ioctl(monitor, UFFDIO_API, &api));
	check(api.api == UFFD_API && (api.features & SUPPORTED) == SUPPORTED);
	check(api.ioctls == (1ULL << _UFFDIO_API | 1ULL << _UFFDIO_REGISTER | 1ULL << _UFFDIO_UNREGISTER));
	api = (struct uffdio_api){ .api = UFFD_API };
	EXPECT(EINVAL, ioctl(monitor, UFFDIO_API, &api));
	check(api.api == 0 && api.features == 0 && api.ioctls == 0);
	close(monitor);
	/* Each feature by itself. */
	for (int bit = 0; bit < 64; bit++) {
		monitor = userfaultfd(0);
		api = (struct uffdio_api){ .api = UFFD_API, .features = 1ULL << bit };
		if (SUPPORTED & 1ULL << bit)
			EXPECT(0, ioctl(monitor, UFFDIO_API, &api));
		else if (bit > 12)
			EXPECT(EINVAL, ioctl(monitor, UFFDIO_API, &api));
		close(monitor);
	}
}

/* The ranges that no request takes. */
static void check_ranges(int (*request)(void *start, size_t length))
{
	EXPECT(EINVAL, request(area + 1, PAGE));
	EXPECT(EINVAL, request(area, PAGE + 1));
	EXPECT(EINVAL, request(area, 0));
	EXPECT(EINVAL, request(kernel_side, PAGE));
	EXPECT(EINVAL, request(area, 1UL << 62));
	EXPECT(EINVAL, request(area, -PAGE));
}

static int monitor; /* watches the first half of the area, and is asked by the functions below */

static int do_register(void *start, size_t length) { return register_range(monitor, start, length, MISSING, NULL); }
static int do_unregister(void *start, size_t length) { return unregister_range(monitor, start, length); }
static int do_wake(void *start, size_t length) { return wake(monitor, start, length); }
static int do_copy(void *start, size_t length) { return copy_range(monitor, start, page_of(1), length, 0); }
static int do_zero(void *start, size_t length) { return zero_range(monitor, start, length, 0); }
static int do_guard(void *start, size_t length) { return guard_range(monitor, start, length, 1); }
static int do_continue(void *start, size_t length) { return continue_range(monitor, start, length, 0); }

static void check_register(void)
{
	uint64_t requests;
	check_ranges(do_register);
	watch(monitor, area, 8, MISSING);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_REGISTER, bad));
	EXPECT(EINVAL, register_range(monitor, area, PAGE, 0, NULL));
	EXPECT(EINVAL, register_range(monitor, area, PAGE, 8, NULL));
	EXPECT(EINVAL, register_range(monitor, nowhere, PAGE, 8, NULL));
	EXPECT(EINVAL, register_range(monitor, nowhere, PAGE, MISSING, NULL));
	EXPECT(EINVAL, register_range(monitor, area, PAGE, MINOR, NULL));
	EXPECT(EINVAL, register_range(monitor, area, PAGE, MINOR | MISSING, NULL));
	int other = monitor_with(0, 0);
	EXPECT(EBUSY, register_range(other, area, PAGE, MISSING, NULL));
	EXPECT(EBUSY, register_range(other, area, 16 * PAGE, STORES, NULL));
	EXPECT(0, register_range(other, area + 8 * PAGE, PAGE, MISSING, &requests));
	check(requests == (1ULL << _UFFDIO_WAKE | 1ULL << _UFFDIO_COPY | 1ULL << _UFFDIO_ZEROPAGE));
	EXPECT(0, register_range(other, area + 8 * PAGE, PAGE, MISSING | STORES, &requests));
	check(requests & 1ULL << _UFFDIO_WRITEPROTECT && !(requests & 1ULL << _UFFDIO_CONTINUE));
	EXPECT(EBUSY, register_range(monitor, area + 8 * PAGE, PAGE, MISSING, NULL));
	close(other);
	EXPECT(0, register_range(monitor, area + 8 * PAGE, PAGE, MISSING, NULL));
	EXPECT(0, unregister_range(monitor, area + 8 * PAGE, PAGE));
	/* Holes between mappings are passed over; a range of nothing but a hole is not. */
	char *holed = map(3, MAP_PRIVATE);
	check(munmap(holed + PAGE, PAGE) == 0);
	EXPECT(0, register_range(monitor, holed, 3 * PAGE, MISSING, NULL));
	EXPECT(EINVAL, register_range(monitor, holed + PAGE, PAGE, MISSING, NULL));
	EXPECT(EINVAL, unregister_range(monitor, holed + PAGE, PAGE));
	EXPECT(0, unregister_range(monitor, holed, 3 * PAGE));
	/* A shared mapping that can never be written. */
	int file = memfd_create("userfault", 0), reader;
	char name[64];
	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	check(file >= 0 && ftruncate(file, PAGE) == 0 && (reader = open(name, O_RDONLY)) >= 0);
	char *read_only = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
	check(read_only != MAP_FAILED);
	EXPECT(EPERM, register_range(monitor, read_only, PAGE, MISSING, NULL));
	close(file), close(reader);
}

static void check_unregister_and_wake(void)
{
	check_ranges(do_unregister);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_UNREGISTER, bad));
	EXPECT(EINVAL, unregister_range(monitor, nowhere, PAGE));
	EXPECT(0, unregister_range(monitor, area + 12 * PAGE, PAGE));
	check_ranges(do_wake);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_WAKE, bad));
	EXPECT(0, wake(monitor, area, PAGE));
	EXPECT(0, wake(monitor, nowhere, PAGE));
	EXPECT(EINVAL, ioctl(monitor, _IO(0xAA, 0x20), area));
	EXPECT(EINVAL, ioctl(monitor, 0x12345678, area));
}

static void check_copy(void)
{
	char *source = map(4, MAP_PRIVATE);
	check_ranges(do_copy);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_COPY, bad));
	EXPECT(EINVAL, copy_range(monitor, area, source, PAGE, 4));
	check(filled == 77);
	EXPECT(EINVAL, copy_range(monitor, area, (void *)-PAGE, 2 * PAGE, 0));
	EXPECT(EFAULT, copy_range(monitor, area, kernel_side, PAGE, 0));
	check(filled == -EFAULT);
	EXPECT(EFAULT, copy_range(monitor, area, nowhere, PAGE, 0));
	EXPECT(ENOENT, copy_range(monitor, area + 12 * PAGE, source, PAGE, 0));
	check(filled == -ENOENT);
	EXPECT(ENOENT, copy_range(monitor, nowhere, source, PAGE, 0));
	EXPECT(ENOENT, copy_range(monitor, nowhere, nowhere, PAGE, 0));
	EXPECT(ENOENT, copy_range(monitor, area + 7 * PAGE, source, 2 * PAGE, 0));
	EXPECT(EINVAL, copy_range(monitor, area, source, PAGE, UFFDIO_COPY_MODE_WP));
	check(filled == -EINVAL);
	EXPECT(0, copy_range(monitor, area, source, PAGE, 0));
	check(filled == (int64_t)PAGE);
	EXPECT(EEXIST, copy_range(monitor, area, source, PAGE, 0));
	check(filled == -EEXIST);
	/* Up to what is there, or to the end of what there is to be read. */
	EXPECT(0, copy_range(monitor, area + 3 * PAGE, source + 1, PAGE, 0));
	EXPECT(EAGAIN, copy_range(monitor, area + PAGE, source, 4 * PAGE, 0));
	check(filled == 2 * (int64_t)PAGE);
	check(munmap(source + PAGE, 3 * PAGE) == 0);
	EXPECT(EAGAIN, copy_range(monitor, area + 4 * PAGE, source, 2 * PAGE, 0));
	check(filled == (int64_t)PAGE);
	check(madvise(area, 8 * PAGE, MADV_DONTNEED) == 0);
}

static void check_zero(void)
{
	check_ranges(do_zero);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_ZEROPAGE, bad));
	EXPECT(EINVAL, zero_range(monitor, area, PAGE, 2));
	EXPECT(ENOENT, zero_range(monitor, area + 12 * PAGE, PAGE, 0));
	EXPECT(0, zero_range(monitor, area + PAGE, PAGE, 0));
	EXPECT(EEXIST, zero_range(monitor, area + PAGE, PAGE, 0));
	check(filled == -EEXIST);
	EXPECT(EAGAIN, zero_range(monitor, area, 2 * PAGE, 0));
	check(filled == (int64_t)PAGE && area[0] == 0 && area[PAGE] == 0);
	check(madvise(area, 8 * PAGE, MADV_DONTNEED) == 0);
}

static void check_guard_and_continue(void)
{
	check_ranges(do_guard);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_WRITEPROTECT, bad));
	EXPECT(EINVAL, guard_range(monitor, area, PAGE, 4));
	EXPECT(EINVAL, guard_range(monitor, area, PAGE, UFFDIO_WRITEPROTECT_MODE_WP | UFFDIO_WRITEPROTECT_MODE_DONTWAKE));
	EXPECT(ENOENT, guard_range(monitor, area, PAGE, UFFDIO_WRITEPROTECT_MODE_WP));
	EXPECT(ENOENT, guard_range(monitor, area, PAGE, 0));
	EXPECT(ENOENT, guard_range(monitor, nowhere, PAGE, 0));
	EXPECT(0, register_range(monitor, area + 8 * PAGE, 2 * PAGE, STORES, NULL));
	EXPECT(0, guard_range(monitor, area + 8 * PAGE, 2 * PAGE, UFFDIO_WRITEPROTECT_MODE_WP));
	EXPECT(0, guard_range(monitor, area + 9 * PAGE, PAGE, UFFDIO_WRITEPROTECT_MODE_DONTWAKE));
	EXPECT(ENOENT, guard_range(monitor, area + 9 * PAGE, 2 * PAGE, 0));
	EXPECT(0, unregister_range(monitor, area + 8 * PAGE, 2 * PAGE));
	check_ranges(do_continue);
	EXPECT(EFAULT, ioctl(monitor, UFFDIO_CONTINUE, bad));
	EXPECT(EINVAL, continue_range(monitor, area, PAGE, 2));
	EXPECT(EINVAL, continue_range(monitor, area, PAGE, 0));
	check(filled == -EINVAL);
	EXPECT(ENOENT, continue_range(monitor, area + 12 * PAGE, PAGE, 0));
	int file = memfd_create("userfault", 0);
	check(file >= 0 && ftruncate(file, 2 * PAGE) == 0 && pwrite(file, "x", 1, PAGE) == 1);
	char *shared = mmap(NULL, 3 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	watch(monitor, shared, 3, MINOR);
	EXPECT(EFAULT, continue_range(monitor, shared, PAGE, 0));
	check(filled == -EFAULT);
	EXPECT(EINVAL, continue_range(monitor, shared + 2 * PAGE, PAGE, 0));
	EXPECT(EFAULT, copy_range(monitor, shared + 2 * PAGE, page_of(1), PAGE, 0));
	EXPECT(EAGAIN, continue_range(monitor, shared + PAGE, 2 * PAGE, 0));
	check(filled == (int64_t)PAGE);
	EXPECT(EEXIST, continue_range(monitor, shared + PAGE, PAGE, 0));
	EXPECT(EEXIST, copy_range(monitor, shared + PAGE, page_of(1), PAGE, 0));
	check(munmap(shared, 3 * PAGE) == 0);
	close(file);
}

static void check_reads(void)
{
	struct uffd_msg event;
	struct work work;
	int slow = monitor_with(0, 0), quick = monitor_with(O_NONBLOCK, 0);
	struct pollfd polled = { .fd = slow, .events = POLLIN };
	EXPECT(EINVAL, read(quick, &event, sizeof event - 1));
	EXPECT(EAGAIN, read(quick, &event, sizeof event));
	EXPECT(EBADF, write(quick, &event, sizeof event));
	check(poll(&polled, 1, 0) == 1 && polled.revents == POLLERR);
	polled.fd = quick;
	check(poll(&polled, 1, 0) == 0);
	char *page = map(1, MAP_PRIVATE);
	watch(quick, page, 1, MISSING);
	start(&work, load_byte, page, 0);
	check(poll(&polled, 1, -1) == 1 && polled.revents == POLLIN);
	EXPECT(EFAULT, read(quick, bad, sizeof event));
	fill(quick, page, 5);
	check(finish(&work) == 5);
	close(slow), close(quick);
}

static int go[2];

static long fork_and_wait(struct work *work)
{
	pid_t child = fork();
	char byte;
	if (child == 0)
		_exit(read(go[0], &byte, 1) != 1);
	(void)work;
	return child;
}

/* The program whose faults these are has ended. */
static void check_ended(void)
{
	int parent = monitor_with(0, UFFD_FEATURE_EVENT_FORK);
	char *page = map(2, MAP_PRIVATE);
	watch(parent, page, 2, MISSING | STORES);
	struct work work;
	check(pipe(go) == 0);
	start(&work, fork_and_wait, NULL, 0);
	int monitor = read_event(parent, UFFD_EVENT_FORK).arg.fork.ufd, status;
	pid_t child = finish(&work);
	EXPECT(0, copy_range(monitor, page, page_of(1), PAGE, 0));
	check(write(go[1], "g", 1) == 1 && waitpid(child, &status, 0) == child && status == 0);
	EXPECT(ESRCH, copy_range(monitor, page, page_of(1), PAGE, 0));
	check(filled == 77);
	EXPECT(ESRCH, zero_range(monitor, page, PAGE, 0));
	EXPECT(ESRCH, guard_range(monitor, page, PAGE, 1));
	EXPECT(ESRCH, continue_range(monitor, page, PAGE, 0));
	EXPECT(ENOMEM, register_range(monitor, page, PAGE, MISSING, NULL));
	EXPECT(ENOMEM, unregister_range(monitor, page, PAGE));
	EXPECT(0, wake(monitor, page, PAGE));
	close(monitor), close(parent), close(go[0]), close(go[1]);
}

static void check_errors(void)
{
	area = map(16, MAP_PRIVATE);
	check_call();
	check_disabled();
	check_api();
	monitor = monitor_with(0, 0);
	check_register();
	check_unregister_and_wake();
	check_copy();
	check_zero();
	check_guard_and_continue();
	check_reads();
	check_ended();
	close(monitor);
}
