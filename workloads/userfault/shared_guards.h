/* Guards on pages of files and of shared memory: they outlive the pages, and are there before them. Most is asked of monitors that want
 * signals: who is refused with SIGBUS would have waited.
 */
#include "monitor.h"

#define FILE_PAGES 16

static int file;     /* of FILE_PAGES pages, in memory */
static char *beside; /* all of it, mapped by somebody whom nobody watches */

/* Whether stores to a page are the monitor's to allow. If not, one has been made. */
static int is_guarded(char *page)
{
	int seen = store(page);
	check(seen == 0 || seen == BUS_ERROR);
	return seen == BUS_ERROR;
}

static int guarded_pages(char *pages, int count)
{
	int guarded = 0;
	for (int page = 0; page < count; page++)
		guarded += is_guarded(pages + page * PAGE);
	return guarded;
}

static void empty_file(void)
{
	check(ftruncate(file, 0) == 0 && ftruncate(file, FILE_PAGES * PAGE) == 0);
}

/* The file, mapped and watched. */
static char *show(int monitor, int flags, uint64_t mode)
{
	uint64_t requests;
	char *pages = mmap(NULL, FILE_PAGES * PAGE, READ_WRITE, flags, file, 0);
	check(pages != MAP_FAILED && register_range(monitor, pages, FILE_PAGES * PAGE, mode, &requests) == 0);
	check(requests & 1ULL << _UFFDIO_WRITEPROTECT);
	return pages;
}

static void hide(int monitor, char *pages)
{
	check(munmap(pages, FILE_PAGES * PAGE) == 0);
	close(monitor);
}

static void guard(int monitor, char *page, int count)
{
	check(guard_range(monitor, page, count * PAGE, GUARD) == 0);
}

static void unguard(int monitor, char *page, int count)
{
	check(guard_range(monitor, page, count * PAGE, 0) == 0);
}

static void shared_stores_are_told(void)
{
	int monitor = monitor_with(0, UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	char *pages = show(monitor, MAP_SHARED, STORES), *anonymous = map(2, MAP_SHARED);
	struct work work;
	pages[0] = 'a', beside[PAGE] = 'b';
	guard(monitor, pages, 3);
	/* There and mapped, there and not mapped, not there. */
	for (int page = 0; page < 3; page++) {
		start(&work, store_byte, pages + page * PAGE + 9, 's');
		read_fault(monitor, pages + page * PAGE, GUARDED_STORE);
		check(pages[page * PAGE + 9] == 0 && beside[page * PAGE + 9] == 0);
		/* Neither the other mapping nor a call asks. */
		beside[page * PAGE + 1] = 'o';
		check(pwrite(file, "w", 1, page * PAGE + 2) == 1 && pages[page * PAGE + 1] == 'o' && pages[page * PAGE + 2] == 'w');
		expect_nothing(monitor);
		unguard(monitor, pages + page * PAGE, 1);
		check(finish(&work) == 0 && beside[page * PAGE + 9] == 's');
	}
	/* The kernel's own. */
	guard(monitor, pages + 4 * PAGE, 1);
	check(pipe(pipe_ends) == 0 && write(pipe_ends[1], "k", 1) == 1);
	start(&work, read_in, pages + 4 * PAGE, 1);
	read_fault(monitor, pages + 4 * PAGE, GUARDED_STORE);
	unguard(monitor, pages + 4 * PAGE, 1);
	check(finish(&work) == 0 && beside[4 * PAGE] == 'k');
	close(pipe_ends[0]), close(pipe_ends[1]);
	watch(monitor, anonymous, 2, STORES);
	guard(monitor, anonymous, 2);
	start(&work, store_byte, anonymous + PAGE, 's');
	read_fault(monitor, anonymous + PAGE, GUARDED_STORE);
	close(monitor);
	check(finish(&work) == 0 && anonymous[PAGE] == 's');
	check(munmap(pages, FILE_PAGES * PAGE) == 0 && munmap(anonymous, 2 * PAGE) == 0);
}

static void guards_outlive_pages(int flags)
{
	empty_file();
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = show(monitor, flags, STORES);
	unsigned char there[FILE_PAGES];
	pages[0] = 'a', beside[PAGE] = 'b', pages[2 * PAGE] = 'c', pages[5 * PAGE] = 'd';
	guard(monitor, pages, FILE_PAGES);
	/* A guard is no page. */
	check(mincore(pages, FILE_PAGES * PAGE, there) == 0 && !there[3] && !there[FILE_PAGES - 1]);
	check(guarded_pages(pages, FILE_PAGES) == FILE_PAGES);
	check(madvise(pages, 4 * PAGE, MADV_DONTNEED) == 0 && guarded_pages(pages, 4) == 4);
	check(pages[0] == (flags & MAP_SHARED ? 'a' : 0) && pages[PAGE] == 'b');
	check(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE) == 0 && guarded_pages(pages, 4) == 4);
	/* (A store that is refused gives a private mapping a copy of its own on Linux, and none here.) */
	if (flags & MAP_SHARED) {
		check(pages[PAGE] == 0);
		check(madvise(pages, 4 * PAGE, MADV_REMOVE) == 0 && guarded_pages(pages, 4) == 4 && pages[0] == 0);
	}
	check(ftruncate(file, 5 * PAGE) == 0 && load(pages + 5 * PAGE) == BUS_ERROR && load(pages + 7 * PAGE) == BUS_ERROR);
	check(ftruncate(file, FILE_PAGES * PAGE) == 0 && guarded_pages(pages, FILE_PAGES) == FILE_PAGES && pages[5 * PAGE] == 0);
	check(mprotect(pages, FILE_PAGES * PAGE, PROT_NONE) == 0 && mprotect(pages, FILE_PAGES * PAGE, PROT_READ) == 0);
	check(store(pages) == ACCESS_ERROR && store(pages + 9 * PAGE) == ACCESS_ERROR);
	check(mprotect(pages, FILE_PAGES * PAGE, READ_WRITE) == 0 && guarded_pages(pages, FILE_PAGES) == FILE_PAGES);
	/* The guard is taken from pages that are there and that are not. */
	check(madvise(pages, FILE_PAGES * PAGE, MADV_DONTNEED) == 0);
	unguard(monitor, pages + 8 * PAGE, 4);
	check(guarded_pages(pages, FILE_PAGES) == FILE_PAGES - 4);
	/* Unmapped and mapped anew it is gone, and so where nobody watches any more. */
	check(mmap(pages + PAGE, PAGE, READ_WRITE, flags | MAP_FIXED, file, PAGE) == pages + PAGE && !is_guarded(pages + PAGE));
	check(unregister_range(monitor, pages + 2 * PAGE, 2 * PAGE) == 0 && guarded_pages(pages + 2 * PAGE, 2) == 0);
	watch(monitor, pages + 2 * PAGE, 2, STORES);
	check(guarded_pages(pages + 2 * PAGE, 2) == 0);
	close(monitor);
	check(guarded_pages(pages, FILE_PAGES) == 0 && munmap(pages, FILE_PAGES * PAGE) == 0);
}

/* Brought in by other calls, a page is guarded as well; the kernel's stores are refused. */
static void brought_in(void)
{
	empty_file();
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS), zeroes = open("/dev/zero", O_RDONLY);
	char *pages = show(monitor, MAP_SHARED, STORES);
	guard(monitor, pages, FILE_PAGES);
	check(mlock(pages, PAGE) == 0 && munlock(pages, PAGE) == 0 && madvise(pages + PAGE, PAGE, MADV_POPULATE_READ) == 0);
	EXPECT(EFAULT, madvise(pages + 2 * PAGE, PAGE, MADV_POPULATE_WRITE));
	EXPECT(EFAULT, read(zeroes, pages + 3 * PAGE, 1));
	check(guarded_pages(pages, 4) == 4);
	close(zeroes);
	hide(monitor, pages);
}

static void filled_in(void)
{
	empty_file();
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = show(monitor, MAP_SHARED, MISSING | STORES);
	beside[4 * PAGE] = 'f';
	guard(monitor, pages, FILE_PAGES);
	/* A page that is missing is missing first. Filled in without a guard, it has none. */
	check(load(pages) == BUS_ERROR && copy_range(monitor, pages, page_of('c'), PAGE, 0) == 0 && !is_guarded(pages));
	check(copy_range(monitor, pages + PAGE, page_of('c'), PAGE, UFFDIO_COPY_MODE_WP) == 0);
	check(is_guarded(pages + PAGE) && pages[PAGE] == 'c' && beside[PAGE] == 'c');
	check(zero_range(monitor, pages + 2 * PAGE, PAGE, 0) == 0 && !is_guarded(pages + 2 * PAGE));
	EXPECT(EEXIST, copy_range(monitor, pages + PAGE, page_of('d'), PAGE, 0));
	EXPECT(EEXIST, copy_range(monitor, pages + 4 * PAGE, page_of('d'), PAGE, 0));
	check(is_guarded(pages + 4 * PAGE) && pages[4 * PAGE] == 'f');
	unguard(monitor, pages + 5 * PAGE, 1);
	check(copy_range(monitor, pages + 5 * PAGE, page_of('e'), PAGE, UFFDIO_COPY_MODE_WP) == 0 && is_guarded(pages + 5 * PAGE));
	hide(monitor, pages);
	/* What the file has, mapped by the monitor. It cannot be guarded by the same request. */
	monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	pages = show(monitor, MAP_SHARED, MINOR | STORES);
	guard(monitor, pages, FILE_PAGES);
	EXPECT(EINVAL, continue_range(monitor, pages + 4 * PAGE, PAGE, 2));
	check(load(pages + 4 * PAGE) == BUS_ERROR && continue_range(monitor, pages + 4 * PAGE, PAGE, 0) == 0);
	check(pages[4 * PAGE] == 'f' && !is_guarded(pages + 4 * PAGE));
	guard(monitor, pages + 4 * PAGE, 1);
	check(is_guarded(pages + 4 * PAGE) && madvise(pages + 4 * PAGE, PAGE, MADV_DONTNEED) == 0);
	check(load(pages + 4 * PAGE) == BUS_ERROR && continue_range(monitor, pages + 4 * PAGE, PAGE, 0) == 0);
	EXPECT(EFAULT, continue_range(monitor, pages + 9 * PAGE, PAGE, 0));
	check(load(pages + 10 * PAGE) == 0 && is_guarded(pages + 10 * PAGE));
	hide(monitor, pages);
}

/* A private mapping: what is stored once the guard is gone is its own. */
static void private_guards(void)
{
	empty_file();
	beside[0] = beside[PAGE] = beside[6 * PAGE] = 'f';
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = show(monitor, MAP_PRIVATE, MISSING | STORES);
	check(load(pages) == 0);
	guard(monitor, pages, FILE_PAGES);
	check(guarded_pages(pages, 2) == 2);
	unguard(monitor, pages, 2);
	pages[0] = pages[PAGE] = 'p';
	check(beside[0] == 'f' && beside[PAGE] == 'f');
	guard(monitor, pages, 1);
	check(is_guarded(pages) && madvise(pages, PAGE, MADV_DONTNEED) == 0 && pages[0] == 'f' && is_guarded(pages));
	/* The page of zeroes does not take a guard's place; others do. */
	EXPECT(EEXIST, zero_range(monitor, pages + 2 * PAGE, PAGE, 0));
	check(copy_range(monitor, pages + 2 * PAGE, page_of('c'), PAGE, 0) == 0 && !is_guarded(pages + 2 * PAGE));
	check(copy_range(monitor, pages + 4 * PAGE, page_of('c'), PAGE, UFFDIO_COPY_MODE_WP) == 0 && is_guarded(pages + 4 * PAGE));
	check(copy_range(monitor, pages + 6 * PAGE, page_of('c'), PAGE, 0) == 0 && pages[6 * PAGE] == 'c' && beside[2 * PAGE] == 0);
	hide(monitor, pages);
}

static char *forked_pages, *forked_zeroes;

/* What a child finds guarded, one bit for each page that it was asked of. */
static long fork_and_look(struct work *work)
{
	(void)work;
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		int found = 0;
		for (int page = 0; page < 4; page++)
			found |= is_guarded(forked_pages + page * PAGE) << page;
		_exit(found | is_guarded(forked_zeroes) << 4);
	}
	int status;
	check(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A child is guarded only where its parent's monitor wants to watch it; then everywhere where its parent is. */
static void guards_of_children(uint64_t feature, int wanted)
{
	empty_file();
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS | feature), of_child = -1;
	struct work work;
	forked_pages = show(monitor, MAP_SHARED, STORES), forked_zeroes = map(1, MAP_PRIVATE);
	watch(monitor, forked_zeroes, 1, STORES);
	forked_pages[0] = 1;
	check(load(forked_zeroes) == 0);
	guard(monitor, forked_pages, 3), guard(monitor, forked_zeroes, 1);
	start(&work, fork_and_look, NULL, 0);
	if (feature)
		of_child = read_event(monitor, UFFD_EVENT_FORK).arg.fork.ufd;
	long found = finish(&work);
	if (found != wanted)
		fail("a child found %#lx guarded, not %#x", found, wanted);
	check(guarded_pages(forked_pages, 4) == 3 && is_guarded(forked_zeroes));
	check(munmap(forked_zeroes, PAGE) == 0 && (of_child == -1 || close(of_child) == 0));
	hide(monitor, forked_pages);
}

static void moved_guards(void)
{
	empty_file();
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = show(monitor, MAP_SHARED, STORES), *place = map(2, MAP_PRIVATE);
	pages[0] = 'm';
	guard(monitor, pages, FILE_PAGES);
	check(mremap(pages, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
	check(guarded_pages(place, 2) == 0 && guarded_pages(pages + 2 * PAGE, FILE_PAGES - 2) == FILE_PAGES - 2);
	check(munmap(place, 2 * PAGE) == 0 && munmap(pages + 2 * PAGE, (FILE_PAGES - 2) * PAGE) == 0);
	close(monitor);
}

/* More than a table maps, most of it never touched. */
static void large_range(void)
{
	enum { PAGES = 1200 };
	int monitor = monitor_with(0, UFFD_FEATURE_SIGBUS);
	char *pages = map(PAGES, MAP_SHARED);
	watch(monitor, pages, PAGES, STORES);
	pages[0] = pages[700 * PAGE] = 1;
	guard(monitor, pages, PAGES);
	check(guarded_pages(pages, PAGES) == PAGES);
	unguard(monitor, pages + 100 * PAGE, 1000);
	check(guarded_pages(pages, PAGES) == PAGES - 1000);
	check(munmap(pages, PAGES * PAGE) == 0);
	close(monitor);
}

static void check_shared_guards(void)
{
	file = memfd_create("userfault", 0);
	check(file >= 0 && ftruncate(file, FILE_PAGES * PAGE) == 0);
	beside = mmap(NULL, FILE_PAGES * PAGE, READ_WRITE, MAP_SHARED, file, 0);
	check(beside != MAP_FAILED);
	shared_stores_are_told();
	guards_outlive_pages(MAP_SHARED);
	guards_outlive_pages(MAP_PRIVATE);
	brought_in();
	filled_in();
	private_guards();
	guards_of_children(0, 0);
	guards_of_children(UFFD_FEATURE_EVENT_FORK, 0x17);
	moved_guards();
	large_range();
	check(munmap(beside, FILE_PAGES * PAGE) == 0);
	close(file);
}
