/* Changes of the address space that a monitor is told of, and what becomes of a registration without them. */
#include "monitor.h"

static char *destination;

static long unmap(struct work *work) { return munmap(work->place, work->number); }
static long drop(struct work *work) { return madvise(work->place, work->number, MADV_DONTNEED); }
static long give_up(struct work *work) { return madvise(work->place, work->number, MADV_FREE); }

static long move(struct work *work)
{
	return mremap(work->place, work->number, work->number, MREMAP_MAYMOVE | MREMAP_FIXED, destination) != destination;
}

static long map_over(struct work *work)
{
	return mmap(work->place, work->number, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != work->place;
}

/* The event is there, nobody goes on before it is read, and nothing is filled in meanwhile. */
static struct uffd_msg read_change(int monitor, struct work *work, int wanted, void *page)
{
	struct pollfd polled = { .fd = monitor, .events = POLLIN };
	check(poll(&polled, 1, -1) == 1 && polled.revents == POLLIN);
	expect_waiting(work);
	EXPECT(EAGAIN, copy_range(monitor, page, page_of(1), PAGE, 0));
	EXPECT(EAGAIN, zero_range(monitor, page, PAGE, 0));
	EXPECT(EAGAIN, continue_range(monitor, page, PAGE, 0));
	EXPECT(EAGAIN, guard_range(monitor, page, PAGE, 0));
	struct uffd_msg event = read_event(monitor, wanted);
	return event;
}

static void removal(void)
{
	int monitor = monitor_with(O_NONBLOCK, UFFD_FEATURE_EVENT_REMOVE);
	char *pages = map(4, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages, 4, MISSING);
	fill(monitor, pages + PAGE, 4);
	start(&work, drop, pages + PAGE, 2 * PAGE);
	struct uffd_msg event = read_change(monitor, &work, UFFD_EVENT_REMOVE, pages);
	check(event.arg.remove.start == (uintptr_t)pages + PAGE && event.arg.remove.end == (uintptr_t)pages + 3 * PAGE);
	check(finish(&work) == 0);
	start(&work, load_byte, pages + PAGE, 0);
	struct pollfd polled = { .fd = monitor, .events = POLLIN };
	check(poll(&polled, 1, -1) == 1);
	read_fault(monitor, pages + PAGE, 0);
	fill(monitor, pages + PAGE, 5);
	check(finish(&work) == 5);
	start(&work, give_up, pages, 2 * PAGE);
	event = read_change(monitor, &work, UFFD_EVENT_REMOVE, pages);
	check(event.arg.remove.start == (uintptr_t)pages && event.arg.remove.end == (uintptr_t)pages + 2 * PAGE);
	check(finish(&work) == 0);
	/* Not told of unmapping, which was not asked for. */
	check(munmap(pages, 4 * PAGE) == 0);
	expect_nothing(monitor);
	close(monitor);
}

static void unmapping(void)
{
	int monitor = monitor_with(O_NONBLOCK, UFFD_FEATURE_EVENT_UNMAP);
	char *pages = map(8, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages + PAGE, 2, MISSING);
	watch(monitor, pages + 4 * PAGE, 1, MISSING);
	/* One event for the call, of the whole range. */
	start(&work, unmap, pages, 5 * PAGE);
	struct uffd_msg event = read_change(monitor, &work, UFFD_EVENT_UNMAP, pages);
	check(event.arg.remove.start == (uintptr_t)pages && event.arg.remove.end == (uintptr_t)pages + 5 * PAGE);
	check(finish(&work) == 0 && load(pages + PAGE) == MAPPING_ERROR);
	watch(monitor, pages + 6 * PAGE, 1, MISSING);
	start(&work, map_over, pages + 6 * PAGE, PAGE);
	event = read_change(monitor, &work, UFFD_EVENT_UNMAP, pages);
	check(event.arg.remove.start == (uintptr_t)pages + 6 * PAGE && event.arg.remove.end == (uintptr_t)pages + 7 * PAGE);
	check(finish(&work) == 0 && pages[6 * PAGE] == 0);
	/* Dropping is not told, which was not asked for; neither is unmapping what nobody watches. */
	check(madvise(pages + 6 * PAGE, PAGE, MADV_DONTNEED) == 0 && munmap(pages + 5 * PAGE, PAGE) == 0);
	expect_nothing(monitor);
	close(monitor);
}

static void remapping(void)
{
	int monitor = monitor_with(O_NONBLOCK, UFFD_FEATURE_EVENT_REMAP);
	struct pollfd polled = { .fd = monitor, .events = POLLIN };
	char *pages = map(8, MAP_PRIVATE);
	struct work work;
	destination = pages + 4 * PAGE;
	watch(monitor, pages, 2, MISSING | STORES);
	fill(monitor, pages, 'r');
	check(guard_range(monitor, pages, PAGE, 1) == 0);
	start(&work, move, pages, 2 * PAGE);
	struct uffd_msg event = read_change(monitor, &work, UFFD_EVENT_REMAP, pages);
	check(event.arg.remap.from == (uintptr_t)pages && event.arg.remap.to == (uintptr_t)destination);
	check(event.arg.remap.len == 2 * PAGE && finish(&work) == 0);
	/* Watched there, guards included. */
	check(destination[0] == 'r');
	start(&work, load_byte, destination + PAGE, 0);
	check(poll(&polled, 1, -1) == 1);
	read_fault(monitor, destination + PAGE, 0);
	fill(monitor, destination + PAGE, 's');
	check(finish(&work) == 's');
	start(&work, store_byte, destination, 't');
	check(poll(&polled, 1, -1) == 1);
	read_fault(monitor, destination, UFFD_PAGEFAULT_FLAG_WP | UFFD_PAGEFAULT_FLAG_WRITE);
	check(guard_range(monitor, destination, PAGE, 0) == 0 && finish(&work) == 0 && destination[0] == 't');
	close(monitor);
	/* Moved without the event: nobody watches it there. */
	monitor = monitor_with(O_NONBLOCK, 0);
	pages = map(4, MAP_PRIVATE);
	watch(monitor, pages, 2, MISSING);
	check(mremap(pages, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages + 3 * PAGE) == pages + 3 * PAGE);
	check(pages[3 * PAGE] == 0);
	expect_nothing(monitor);
	close(monitor);
	/* With both events a move is told as a move, and then as an end of the old place. */
	monitor = monitor_with(0, UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_UNMAP);
	pages = map(4, MAP_PRIVATE), destination = pages + 2 * PAGE;
	watch(monitor, pages, 4, MISSING);
	start(&work, move, pages, PAGE);
	event = read_event(monitor, UFFD_EVENT_UNMAP);
	check(event.arg.remove.start == (uintptr_t)destination && event.arg.remove.end == (uintptr_t)destination + PAGE);
	event = read_event(monitor, UFFD_EVENT_REMAP);
	check(event.arg.remap.from == (uintptr_t)pages && event.arg.remap.to == (uintptr_t)destination);
	event = read_event(monitor, UFFD_EVENT_UNMAP);
	check(event.arg.remove.start == (uintptr_t)pages && event.arg.remove.end == (uintptr_t)pages + PAGE);
	check(finish(&work) == 0);
	close(monitor);
}

static long fork_child(struct work *work)
{
	pid_t child = fork();
	if (child == 0)
		_exit(load(work->place) ? 1 : *work->place);
	return child;
}

static void forking(void)
{
	int monitor = monitor_with(O_NONBLOCK, UFFD_FEATURE_EVENT_FORK), status;
	char *pages = map(2, MAP_PRIVATE);
	struct work work;
	watch(monitor, pages, 2, MISSING);
	fill(monitor, pages + PAGE, 3);
	start(&work, fork_child, pages, 0);
	struct uffd_msg event = read_change(monitor, &work, UFFD_EVENT_FORK, pages);
	int of_child = event.arg.fork.ufd;
	pid_t child = finish(&work);
	check(of_child > 2 && fcntl(of_child, F_GETFL) & O_NONBLOCK);
	struct pollfd polled = { .fd = of_child, .events = POLLIN };
	check(poll(&polled, 1, -1) == 1);
	read_fault(of_child, pages, 0);
	expect_nothing(monitor);
	fill(of_child, pages, 21);
	check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 21);
	/* The parent's page is still missing. */
	start(&work, load_byte, pages, 0);
	polled.fd = monitor;
	check(poll(&polled, 1, -1) == 1);
	read_fault(monitor, pages, 0);
	fill(monitor, pages, 22);
	check(finish(&work) == 22);
	close(of_child), close(monitor);
	/* Without the event the child is not watched. */
	monitor = monitor_with(O_NONBLOCK, 0);
	pages = map(1, MAP_PRIVATE);
	watch(monitor, pages, 1, MISSING);
	start(&work, fork_child, pages, 0);
	child = finish(&work);
	check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_nothing(monitor);
	close(monitor);
}

/* The end of the monitor is heard by all who tell. (Not by a fork on Linux, whose half-made child holds the file open.) */
static void closing(void)
{
	int monitor = monitor_with(O_NONBLOCK, UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP);
	char *pages = map(2, MAP_PRIVATE);
	struct work works[2];
	watch(monitor, pages, 2, MISSING);
	start(&works[0], unmap, pages, PAGE);
	start(&works[1], drop, pages + PAGE, PAGE);
	expect_waiting(&works[0]), expect_waiting(&works[1]);
	close(monitor);
	check(finish(&works[0]) == 0 && finish(&works[1]) == 0 && pages[PAGE] == 0);
}

static void check_events(void)
{
	removal();
	unmapping();
	remapping();
	forking();
	closing();
}
