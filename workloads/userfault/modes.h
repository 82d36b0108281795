/* Missing and minor faults: how they are told, and how they are resolved. */
#include "monitor.h"

#define THREADS 6

static void missing(void)
{
	int monitor = monitor_with(O_CLOEXEC, UFFD_FEATURE_THREAD_ID);
	char *pages = map(THREADS, MAP_PRIVATE);
	struct work works[THREADS];
	watch(monitor, pages, THREADS, MISSING);
	for (int i = 0; i < THREADS; i++)
		start(&works[i], i % 2 ? store_byte : load_byte, pages + i * PAGE + 100, 7);
	for (int i = 0; i < THREADS; i++) {
		struct uffd_msg event = read_event(monitor, UFFD_EVENT_PAGEFAULT);
		int page = (event.arg.pagefault.address - (uintptr_t)pages) / PAGE;
		check(event.arg.pagefault.address == (uintptr_t)pages + page * PAGE);
		check(event.arg.pagefault.flags == (page % 2 ? UFFD_PAGEFAULT_FLAG_WRITE : 0));
		/* The id is stored before the access, and the access is what we have just heard of. */
		check(event.arg.pagefault.feat.ptid == (unsigned)works[page].thread_id);
		fill(monitor, pages + page * PAGE, 40 + page);
	}
	for (int i = 0; i < THREADS; i++) {
		check(finish(&works[i]) == (i % 2 ? 0 : 40 + i));
		check(pages[i * PAGE + 100] == (i % 2 ? 7 : 40 + i) && pages[i * PAGE] == 40 + i);
	}
	expect_nothing(monitor);
	/* What is dropped is missing again, and what is unregistered is zeroes. */
	check(madvise(pages, PAGE, MADV_DONTNEED) == 0);
	start(&works[0], load_byte, pages, 0);
	read_fault(monitor, pages, 0);
	check(zero_range(monitor, pages, PAGE, 0) == 0 && finish(&works[0]) == 0);
	check(madvise(pages, 2 * PAGE, MADV_DONTNEED) == 0 && unregister_range(monitor, pages, PAGE) == 0);
	check(pages[0] == 0);
	start(&works[0], load_byte, pages + PAGE, 0);
	read_fault(monitor, pages + PAGE, 0);
	fill(monitor, pages + PAGE, 3);
	check(finish(&works[0]) == 3);
	close(monitor);
}

/* Without a wake nobody goes on; two threads that wait for one page both do. */
static void waking(void)
{
	int monitor = monitor_with(0, UFFD_FEATURE_EXACT_ADDRESS);
	char *pages = map(2, MAP_PRIVATE);
	struct work works[2];
	watch(monitor, pages, 2, MISSING);
	for (int i = 0; i < 2; i++)
		start(&works[i], load_byte, pages + 5, 0);
	for (int i = 0; i < 2; i++)
		read_fault(monitor, pages + 5, 0);
	check(copy_range(monitor, pages, page_of(9), PAGE, UFFDIO_COPY_MODE_DONTWAKE) == 0);
	expect_waiting(&works[0]), expect_waiting(&works[1]);
	check(wake(monitor, pages + PAGE, PAGE) == 0);
	expect_waiting(&works[0]), expect_waiting(&works[1]);
	check(wake(monitor, pages, PAGE) == 0);
	check(finish(&works[0]) == 9 && finish(&works[1]) == 9);
	/* Woken without a page, a thread asks again. */
	start(&works[0], load_byte, pages + PAGE, 0);
	read_fault(monitor, pages + PAGE, 0);
	check(wake(monitor, pages, 2 * PAGE) == 0);
	read_fault(monitor, pages + PAGE, 0);
	check(zero_range(monitor, pages + PAGE, PAGE, UFFDIO_ZEROPAGE_MODE_DONTWAKE) == 0);
	expect_waiting(&works[0]);
	check(wake(monitor, pages + PAGE, PAGE) == 0 && finish(&works[0]) == 0);
	close(monitor);
}

static int shared_monitor;
static char *shared_pages;

static long answer_some(struct work *work)
{
	struct uffd_msg events[2];
	long answered = 0;
	for (;;) {
		ssize_t got = read(shared_monitor, events, sizeof events);
		check(got > 0 && got % sizeof *events == 0);
		for (ssize_t i = 0; i < got / (ssize_t)sizeof *events; i++) {
			char *page = (char *)events[i].arg.pagefault.address, bytes[PAGE];
			/* The last page tells one reader to go home. */
			int is_end = page >= shared_pages + 64 * PAGE;
			memset(bytes, is_end ? 1 : (page - shared_pages) / PAGE, PAGE);
			check(copy_range(shared_monitor, page, bytes, PAGE, 0) == 0);
			if (is_end)
				return answered;
			answered++;
		}
	}
	return work->number;
}

static long load_all(struct work *work)
{
	for (int i = work->number; i < 64; i += 4)
		check(shared_pages[i * PAGE] == i);
	return 0;
}

static void several_readers(void)
{
	struct work readers[3], users[4], last[3];
	shared_monitor = monitor_with(0, 0);
	shared_pages = map(67, MAP_PRIVATE);
	watch(shared_monitor, shared_pages, 67, MISSING);
	for (int i = 0; i < 3; i++)
		start(&readers[i], answer_some, NULL, 0);
	for (int i = 0; i < 4; i++)
		start(&users[i], load_all, NULL, i);
	for (int i = 0; i < 4; i++)
		finish(&users[i]);
	for (int i = 0; i < 3; i++) {
		start(&last[i], load_byte, shared_pages + (64 + i) * PAGE, 0);
		check(finish(&last[i]) == 1);
	}
	long answered = 0;
	for (int i = 0; i < 3; i++)
		answered += finish(&readers[i]);
	check(answered == 64);
	close(shared_monitor);
}

/* ---- accesses by the kernel ---- */

static int pipe_ends[2];

static long write_out(struct work *work)
{
	return write(pipe_ends[1], work->place, work->number) == work->number ? 0 : errno;
}

static long read_in(struct work *work)
{
	return read(pipe_ends[0], work->place, work->number) == work->number ? 0 : errno;
}

static void kernel_accesses(void)
{
	int monitor = monitor_with(0, 0);
	char *pages = map(2, MAP_PRIVATE);
	struct work work;
	check(pipe(pipe_ends) == 0);
	watch(monitor, pages, 2, MISSING);
	start(&work, write_out, pages, 10);
	read_fault(monitor, pages, 0);
	fill(monitor, pages, 'k');
	check(finish(&work) == 0);
	start(&work, read_in, pages + PAGE, 10);
	read_fault(monitor, pages + PAGE, UFFD_PAGEFAULT_FLAG_WRITE);
	fill(monitor, pages + PAGE, 'm');
	check(finish(&work) == 0 && pages[PAGE] == 'k' && pages[PAGE + 9] == 'k' && pages[PAGE + 10] == 'm');
	close(monitor);
	/* A monitor of user mode only: the kernel's own fault is an error. */
	monitor = monitor_with(UFFD_USER_MODE_ONLY, 0);
	check(madvise(pages, 2 * PAGE, MADV_DONTNEED) == 0);
	watch(monitor, pages, 2, MISSING);
	start(&work, write_out, pages, 10);
	check(finish(&work) == EFAULT);
	expect_nothing(monitor);
	start(&work, load_byte, pages, 0);
	read_fault(monitor, pages, 0);
	fill(monitor, pages, 1);
	check(finish(&work) == 1);
	close(monitor), close(pipe_ends[0]), close(pipe_ends[1]);
}

static void signals_instead(void)
{
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = map(2, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages, 2, MISSING | STORES);
	check(load(pages) == BUS_ERROR && store(pages + PAGE) == BUS_ERROR);
	check(pipe(pipe_ends) == 0);
	start(&work, write_out, pages, 10);
	check(finish(&work) == EFAULT);
	fill(monitor, pages, 4);
	check(load(pages) == 0 && pages[0] == 4 && store(pages) == 0);
	check(guard_range(monitor, pages, PAGE, 1) == 0 && load(pages) == 0 && store(pages) == BUS_ERROR);
	check(guard_range(monitor, pages, PAGE, 0) == 0 && store(pages) == 0);
	close(monitor), close(pipe_ends[0]), close(pipe_ends[1]);
}

/* ---- what ends a wait ---- */

static volatile int interruptions;

static void on_interruption(int number)
{
	(void)number;
	interruptions++;
}

static void ends_of_waits(void)
{
	int monitor = monitor_with(0, 0);
	char *pages = map(4, MAP_PRIVATE);
	struct work works[2];
	watch(monitor, pages, 4, MISSING);
	/* A signal is handled, and the access tried again: another event. */
	struct sigaction action = { .sa_handler = on_interruption };
	check(sigaction(SIGUSR1, &action, NULL) == 0);
	start(&works[0], load_byte, pages, 0);
	read_fault(monitor, pages, 0);
	check(pthread_kill(works[0].thread, SIGUSR1) == 0);
	read_fault(monitor, pages, 0);
	check(interruptions == 1);
	fill(monitor, pages, 6);
	check(finish(&works[0]) == 6);
	/* Unmapped under the waiter: what it finds then is a hole. */
	start(&works[0], load_or_signal, pages + PAGE, 0);
	read_fault(monitor, pages + PAGE, 0);
	check(munmap(pages + PAGE, PAGE) == 0 && wake(monitor, pages + PAGE, PAGE) == 0);
	check(finish(&works[0]) == MAPPING_ERROR);
	/* Unregistered, and closed: zeroes. One has been read, and one has not. */
	start(&works[0], load_byte, pages + 2 * PAGE, 0);
	read_fault(monitor, pages + 2 * PAGE, 0);
	check(unregister_range(monitor, pages + 2 * PAGE, PAGE) == 0);
	check(finish(&works[0]) == 0);
	check(madvise(pages, PAGE, MADV_DONTNEED) == 0);
	start(&works[0], load_byte, pages, 0);
	read_fault(monitor, pages, 0);
	start(&works[1], load_byte, pages + 3 * PAGE, 0);
	expect_waiting(&works[1]);
	close(monitor);
	check(finish(&works[0]) == 0 && finish(&works[1]) == 0);
	/* Killed while it waits, in user mode and in a call. */
	monitor = monitor_with(0, 0);
	for (int in_call = 0; in_call < 2; in_call++) {
		pid_t child = fork();
		if (child == 0) {
			int own = monitor_with(0, 0);
			watch(own, pages, 1, MISSING);
			check(madvise(pages, PAGE, MADV_DONTNEED) == 0 && pipe(pipe_ends) == 0);
			alarm(1);
			_exit(in_call ? write(pipe_ends[1], pages, 1) : pages[0]);
		}
		int status;
		check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	}
	close(monitor);
}

/* ---- shared memory ---- */

static void shared_missing(void)
{
	int monitor = monitor_with(0, 0), file = memfd_create("userfault", 0);
	check(file >= 0 && ftruncate(file, 4 * PAGE) == 0 && pwrite(file, "abc", 3, PAGE) == 3);
	char *pages = mmap(NULL, 5 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	char *private = mmap(NULL, 4 * PAGE, READ_WRITE, MAP_PRIVATE, file, 0);
	struct work work;
	watch(monitor, pages, 5, MISSING);
	/* A page that the file has is not missing; one behind its end is neither. */
	check(pages[PAGE] == 'a' && load(pages + 4 * PAGE) == BUS_ERROR);
	expect_nothing(monitor);
	start(&work, store_byte, pages + 3, 's');
	read_fault(monitor, pages, UFFD_PAGEFAULT_FLAG_WRITE);
	fill(monitor, pages, 'f');
	char bytes[4];
	check(finish(&work) == 0 && pread(file, bytes, 4, 0) == 4 && memcmp(bytes, "fffs", 4) == 0);
	EXPECT(EEXIST, copy_range(monitor, pages + PAGE, page_of(1), PAGE, 0));
	start(&work, load_byte, pages + 2 * PAGE, 0);
	read_fault(monitor, pages + 2 * PAGE, 0);
	check(zero_range(monitor, pages + 2 * PAGE, PAGE, 0) == 0 && finish(&work) == 0);
	pages[2 * PAGE] = 8;
	check(pread(file, bytes, 1, 2 * PAGE) == 1 && bytes[0] == 8);
	/* A private mapping: what is filled in does not come into the file. */
	watch(monitor, private, 4, MISSING);
	check(private[PAGE] == 'a');
	start(&work, load_byte, private + 3 * PAGE, 0);
	read_fault(monitor, private + 3 * PAGE, 0);
	fill(monitor, private + 3 * PAGE, 'p');
	check(finish(&work) == 'p' && pread(file, bytes, 1, 3 * PAGE) == 1 && bytes[0] == 0);
	check(munmap(pages, 5 * PAGE) == 0 && munmap(private, 4 * PAGE) == 0);
	close(monitor), close(file);
	/* Shared anonymous memory. */
	monitor = monitor_with(0, 0);
	pages = map(1, MAP_SHARED);
	watch(monitor, pages, 1, MISSING);
	start(&work, load_byte, pages, 0);
	read_fault(monitor, pages, 0);
	fill(monitor, pages, 2);
	check(finish(&work) == 2);
	close(monitor);
}

static void minor(void)
{
	int monitor = monitor_with(0, 0), file = memfd_create("userfault", 0);
	check(file >= 0 && ftruncate(file, 4 * PAGE) == 0);
	char *pages = mmap(NULL, 4 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	char *other = mmap(NULL, 4 * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	struct work work;
	uint64_t requests;
	check(register_range(monitor, pages, 4 * PAGE, MINOR, &requests) == 0);
	check(requests & 1ULL << _UFFDIO_CONTINUE && !(requests & 1ULL << _UFFDIO_WRITEPROTECT));
	/* What the file does not have comes without anybody's help. */
	check(pages[3 * PAGE] == 0);
	expect_nothing(monitor);
	other[0] = 'o', other[PAGE] = 'q';
	start(&work, load_byte, pages, 0);
	read_fault(monitor, pages, UFFD_PAGEFAULT_FLAG_MINOR);
	other[0] = 'n';
	check(continue_range(monitor, pages, PAGE, 0) == 0 && filled == (int64_t)PAGE && finish(&work) == 'n');
	start(&work, store_byte, pages + PAGE, 'w');
	read_fault(monitor, pages + PAGE, UFFD_PAGEFAULT_FLAG_MINOR | UFFD_PAGEFAULT_FLAG_WRITE);
	check(continue_range(monitor, pages + PAGE, PAGE, UFFDIO_CONTINUE_MODE_DONTWAKE) == 0);
	expect_waiting(&work);
	check(wake(monitor, pages + PAGE, PAGE) == 0 && finish(&work) == 0 && other[PAGE] == 'w');
	/* Dropped from the mapping, the page is still the file's. */
	check(madvise(pages, PAGE, MADV_DONTNEED) == 0);
	start(&work, load_byte, pages, 0);
	read_fault(monitor, pages, UFFD_PAGEFAULT_FLAG_MINOR);
	check(continue_range(monitor, pages, PAGE, 0) == 0 && finish(&work) == 'n');
	/* Both kinds of a file's faults at once. */
	check(ftruncate(file, 0) == 0 && ftruncate(file, 4 * PAGE) == 0);
	watch(monitor, pages, 4, MINOR | MISSING);
	start(&work, load_byte, pages + 2 * PAGE, 0);
	read_fault(monitor, pages + 2 * PAGE, 0);
	fill(monitor, pages + 2 * PAGE, 'z');
	check(finish(&work) == 'z');
	check(madvise(pages + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
	start(&work, load_byte, pages + 2 * PAGE, 0);
	read_fault(monitor, pages + 2 * PAGE, UFFD_PAGEFAULT_FLAG_MINOR);
	check(continue_range(monitor, pages + 2 * PAGE, PAGE, 0) == 0 && finish(&work) == 'z');
	close(monitor), close(file);
}

static void check_modes(void)
{
	missing();
	waking();
	several_readers();
	kernel_accesses();
	signals_instead();
	ends_of_waits();
	shared_missing();
	minor();
}
