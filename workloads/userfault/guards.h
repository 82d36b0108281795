/* Pages that are guarded against stores. */
#include "monitor.h"

#define GUARD UFFDIO_WRITEPROTECT_MODE_WP
#define GUARDED_STORE (UFFD_PAGEFAULT_FLAG_WP | UFFD_PAGEFAULT_FLAG_WRITE)

static void stores_are_told(void)
{
	int monitor = monitor_with(0, 0);
	char *pages = map(4, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages, 4, STORES);
	/* Pages that are not there are not told, and are not guarded. */
	check(guard_range(monitor, pages, 4 * PAGE, GUARD) == 0);
	for (int page = 0; page < 4; page++)
		pages[page * PAGE] = page;
	expect_nothing(monitor);
	check(guard_range(monitor, pages, 3 * PAGE, GUARD) == 0);
	pages[3 * PAGE] = 9;
	check(pages[0] == 0 && pages[2 * PAGE] == 2);
	start(&work, store_byte, pages + PAGE + 7, 'x');
	read_fault(monitor, pages + PAGE, GUARDED_STORE);
	check(pages[PAGE + 7] == 0);
	check(guard_range(monitor, pages + PAGE, PAGE, UFFDIO_WRITEPROTECT_MODE_DONTWAKE) == 0);
	expect_waiting(&work);
	check(wake(monitor, pages + PAGE, PAGE) == 0 && finish(&work) == 0 && pages[PAGE + 7] == 'x' && pages[PAGE] == 1);
	/* The guard is on the page: it survives other rights, and goes with the page. */
	check(mprotect(pages, PAGE, PROT_NONE) == 0 && mprotect(pages, PAGE, PROT_READ) == 0 && store(pages) == ACCESS_ERROR);
	check(mprotect(pages, PAGE, READ_WRITE) == 0);
	start(&work, store_byte, pages, 'y');
	read_fault(monitor, pages, GUARDED_STORE);
	check(guard_range(monitor, pages, PAGE, 0) == 0 && finish(&work) == 0 && pages[0] == 'y');
	check(madvise(pages + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
	pages[2 * PAGE] = 5;
	/* Stores by the kernel are told as well. */
	check(guard_range(monitor, pages, PAGE, GUARD) == 0 && pipe(pipe_ends) == 0 && write(pipe_ends[1], "k", 1) == 1);
	start(&work, read_in, pages, 1);
	read_fault(monitor, pages, GUARDED_STORE);
	check(guard_range(monitor, pages, PAGE, 0) == 0 && finish(&work) == 0 && pages[0] == 'k');
	close(pipe_ends[0]), close(pipe_ends[1]);
	/* Without a monitor nothing is guarded. */
	check(guard_range(monitor, pages, 4 * PAGE, GUARD) == 0 && unregister_range(monitor, pages, 2 * PAGE) == 0);
	pages[0] = pages[PAGE] = 1;
	start(&work, store_byte, pages + 3 * PAGE, 'z');
	read_fault(monitor, pages + 3 * PAGE, GUARDED_STORE);
	close(monitor);
	check(finish(&work) == 0 && pages[3 * PAGE] == 'z');
	pages[2 * PAGE] = 1;
}

static void zeroes_and_copies(void)
{
	int monitor = monitor_with(0, 0);
	char *pages = map(3, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages, 3, MISSING | STORES);
	/* Copied in with a guard. */
	start(&work, store_byte, pages, 'a');
	read_fault(monitor, pages, UFFD_PAGEFAULT_FLAG_WRITE);
	check(copy_range(monitor, pages, page_of('c'), PAGE, UFFDIO_COPY_MODE_WP) == 0);
	read_fault(monitor, pages, GUARDED_STORE);
	check(pages[0] == 'c' && guard_range(monitor, pages, PAGE, 0) == 0);
	check(finish(&work) == 0 && pages[0] == 'a' && pages[1] == 'c');
	/* The page of zeroes, guarded, then copied by the store. */
	check(zero_range(monitor, pages + PAGE, PAGE, 0) == 0 && guard_range(monitor, pages + PAGE, PAGE, GUARD) == 0);
	start(&work, store_byte, pages + PAGE, 'b');
	read_fault(monitor, pages + PAGE, GUARDED_STORE);
	check(guard_range(monitor, pages + PAGE, PAGE, 0) == 0 && finish(&work) == 0 && pages[PAGE] == 'b');
	check(zero_range(monitor, pages + 2 * PAGE, PAGE, 0) == 0 && pages[2 * PAGE] == 0);
	close(monitor);
}

/* A child has the page as it was; the parent's guard, and what becomes of it, is the parent's. */
static void children(void)
{
	int monitor = monitor_with(0, 0), tell[2], hear[2], status;
	char *page = map(1, MAP_PRIVATE), byte;
	struct work work;
	check(pipe(tell) == 0 && pipe(hear) == 0);
	watch(monitor, page, 1, STORES);
	*page = 'p';
	check(guard_range(monitor, page, PAGE, GUARD) == 0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		int right = *page == 'p' && write(hear[1], "r", 1) == 1 && read(tell[0], &byte, 1) == 1 && *page == 'p';
		/* Nobody is told of this one. */
		*page = 'c';
		_exit(!(right && *page == 'c'));
	}
	check(read(hear[0], &byte, 1) == 1);
	start(&work, store_byte, page, 'n');
	read_fault(monitor, page, GUARDED_STORE);
	check(*page == 'p' && guard_range(monitor, page, PAGE, 0) == 0 && finish(&work) == 0 && *page == 'n');
	check(write(tell[1], "t", 1) == 1 && waitpid(child, &status, 0) == child && status == 0 && *page == 'n');
	close(monitor), close(tell[0]), close(tell[1]), close(hear[0]), close(hear[1]);
}

/* What was once guarded and has moved to where nobody watches is written like any page. */
static void moves(void)
{
	int monitor = monitor_with(0, 0);
	char *pages = map(4, MAP_PRIVATE);
	watch(monitor, pages, 2, STORES);
	pages[0] = 'm', pages[PAGE] = 'n';
	check(guard_range(monitor, pages, 2 * PAGE, GUARD) == 0);
	check(mremap(pages, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages + 3 * PAGE) == pages + 3 * PAGE);
	check(pages[3 * PAGE] == 'm');
	pages[3 * PAGE] = 'o';
	expect_nothing(monitor);
	/* Registered anew for missing pages alone, it is not guarded either. */
	check(unregister_range(monitor, pages + PAGE, PAGE) == 0);
	watch(monitor, pages + PAGE, 1, MISSING);
	pages[PAGE] = 'q';
	expect_nothing(monitor);
	close(monitor);
}

/* A large range in one call, with threads that store beside. */
static void many_pages(void)
{
	enum { PAGES = 1200 };
	int monitor = monitor_with(0, 0);
	char *pages = map(PAGES, MAP_PRIVATE);
	struct work works[2];
	watch(monitor, pages, PAGES, STORES);
	for (int page = 0; page < PAGES; page++)
		pages[page * PAGE] = 1;
	check(guard_range(monitor, pages, PAGES * PAGE, GUARD) == 0);
	start(&works[0], store_byte, pages + 3 * PAGE, 2);
	start(&works[1], store_byte, pages + 1100 * PAGE, 2);
	for (int i = 0; i < 2; i++)
		read_event(monitor, UFFD_EVENT_PAGEFAULT);
	check(pages[3 * PAGE] == 1 && pages[1100 * PAGE] == 1);
	check(guard_range(monitor, pages, PAGES * PAGE, 0) == 0);
	finish(&works[0]), finish(&works[1]);
	for (int page = 0; page < PAGES; page++)
		pages[page * PAGE]++;
	check(pages[0] == 2 && pages[3 * PAGE] == 3 && pages[1100 * PAGE] == 3);
	expect_nothing(monitor);
	close(monitor);
}

static void check_guards(void)
{
	stores_are_told();
	zeroes_and_copies();
	children();
	moves();
	many_pages();
}
