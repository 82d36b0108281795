/* What calls answer, and what figures say: swapon, swapoff, madvise, /proc/swaps. Nothing here needs memory to be short. */
#include "swap.h"
#include <pthread.h>
#include <sys/syscall.h>

/* Linux counts up to so many pages of each thread late. */
enum { PAGES = 600, LATE = 64 };

#define refused(call, error) check((call) == -1 && errno == (error))

/* Of bad pages there may be 637, in the disk, but not all of it; and who wrote the header may have had the other order of bytes. */
static void headers_are_looked_at(void)
{
	struct header header = {.pages = 600, .bad_count = 638};
	for (uint32_t i = 0; i < 637; i++)
		header.bad[i] = i % 599 + 1;
	make_swap_of(&header);
	refused(swapon(DISK, 0), EINVAL);
	header.bad_count = 599;
	make_swap_of(&header);
	refused(swapon(DISK, 0), EINVAL);
	header.bad[5] = 0;
	make_swap_of(&header);
	refused(swapon(DISK, 0), EINVAL);
	header.bad[5] = 600;
	make_swap_of(&header);
	refused(swapon(DISK, 0), EINVAL);
	header.bad[5] = 6;
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		header.bad_count = 590;
		header.is_swapped = is_swapped;
		make_swap_of(&header);
		check(swapon(DISK, 0) == 0);
		check(information("SwapTotal") == 9);
		check(swapoff(DISK) == 0);
	}
}

static void mistakes_are_told(void)
{
	refused(swapon("/dev/nothing", 0), ENOENT);
	refused(swapon("/dev/null", 0), EINVAL);
	refused(swapon("/dev", 0), EISDIR);
	refused(swapon((char *)8, 0), EFAULT);
	refused(swapon(DISK, 1 << 30), EINVAL);
	refused(swapoff(DISK), EINVAL);
	refused(swapoff("/dev/nothing"), ENOENT);
	/* No header, and one for more pages than there are. */
	refused(swapon(DISK, 0), EINVAL);
	make_swap(1 << 28);
	refused(swapon(DISK, 0), EINVAL);
	headers_are_looked_at();
	long slots = make_swap(0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(setuid(1000) == 0);
		refused(swapon(DISK, 0), EPERM);
		refused(swapoff(DISK), EPERM);
		_exit(0);
	}
	int ended;
	check(waitpid(child, &ended, 0) == child && ended == 0);
	check(swapon(DISK, 0) == 0);
	refused(swapon(DISK, 0), EBUSY);
	check(information("SwapTotal") == slots && information("SwapFree") == slots);
	check(swapoff(DISK) == 0);
	check(information("SwapTotal") == 0);
	check(swapon(DISK, SWAP_FLAG_PREFER | 7) == 0);
}

static void the_table_names_the_disk(long used)
{
	char text[512] = {0}, path[64], type[64];
	int file = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	check(file >= 0 && read(file, text, sizeof text - 1) > 0 && close(file) == 0);
	long size, taken, priority;
	check(strncmp(text, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", 38) == 0);
	check(sscanf(strchr(text, '\n'), "%63s %63s %ld %ld %ld", path, type, &size, &taken, &priority) == 5);
	check(strcmp(path, DISK) == 0 && strcmp(type, "partition") == 0 && priority == 7);
	check(size / 4 == information("SwapTotal"));
	if (taken < used * 4)
		fail("/proc/swaps says that %ld KiB are used, of %ld pages", taken, used);
}

/* Pages on the disk, asked for until they are there: a page that another CPU is just about to let go of may stay. */
static void page_out(unsigned char *memory, long pages)
{
	for (int tries = 0; tries < 100 && status("VmSwap") < pages; tries++)
		check(madvise(memory, pages * PAGE, MADV_PAGEOUT) == 0);
	if (status("VmSwap") < pages)
		fail("of %ld pages %ld are in swap", pages, status("VmSwap"));
}

static void pages_go_when_told_and_come_back(void)
{
	unsigned char *memory = memory_of(PAGES), resident[PAGES];
	for (long page = 0; page < PAGES; page++)
		fill_page(memory + page * PAGE, page, 1);
	long out = count("pswpout"), in = count("pswpin");
	check(madvise(memory, PAGES * PAGE, MADV_COLD) == 0);
	page_out(memory, PAGES);
	the_table_names_the_disk(PAGES);
	check(count("pswpout") - out >= PAGES);
	check(information("SwapTotal") - information("SwapFree") >= PAGES);
	/* On Linux they may be in memory still, beside. */
	check(mincore(memory, PAGES * PAGE, resident) == 0);
	long beside = 0;
	for (long page = 0; page < PAGES; page++)
		beside += resident[page] & 1;
	/* A call reads some of it, and the program the rest. */
	int pipe_ends[2];
	check(pipe(pipe_ends) == 0);
	for (long page = 0; page < PAGES; page++) {
		unsigned char copy[PAGE];
		if (page % 3 == 0) {
			check(write(pipe_ends[1], memory + page * PAGE, PAGE) == (ssize_t)PAGE);
			check(read(pipe_ends[0], copy, PAGE) == (ssize_t)PAGE);
			expect_page(copy, page, 1);
		} else {
			expect_page(memory + page * PAGE, page, 1);
		}
	}
	check(close(pipe_ends[0]) == 0 && close(pipe_ends[1]) == 0);
	check(count("pswpin") - in + beside >= PAGES);
	check(madvise(memory + PAGE, PAGE, MADV_DONTNEED) == 0 && memory[PAGE] == 0);
	check(mlock(memory, PAGE) == 0);
	refused(madvise(memory, PAGES * PAGE, MADV_PAGEOUT), EINVAL);
	refused(madvise(memory, PAGES * PAGE, MADV_COLD), EINVAL);
	check(munmap(memory, PAGES * PAGE) == 0);
}

static void changes_of_the_mapping_keep_what_is_in_swap(void)
{
	unsigned char *memory = memory_of(PAGES);
	for (long page = 0; page < PAGES; page++)
		fill_page(memory + page * PAGE, page, 2);
	page_out(memory, PAGES);
	check(mprotect(memory, PAGES * PAGE, PROT_NONE) == 0);
	check(mprotect(memory, PAGES * PAGE, PROT_READ) == 0);
	unsigned char *to = memory_of(PAGES + 1) + PAGE;
	check(mremap(memory, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	check(mprotect(to, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
	for (long page = 0; page < PAGES; page += 2)
		expect_page(to + page * PAGE, page, 2);
	/* Locking brings the rest in. */
	check(mlock(to, PAGES * PAGE) == 0 && status("VmSwap") <= LATE);
	for (long page = 0; page < PAGES; page++)
		expect_page(to + page * PAGE, page, 2);
	check(munmap(to, PAGES * PAGE) == 0);
}

static void a_child_has_what_was_in_swap(void)
{
	unsigned char *memory = memory_of(PAGES);
	for (long page = 0; page < PAGES; page++)
		fill_page(memory + page * PAGE, page, 3);
	page_out(memory, PAGES);
	for (int which = 0; which < 3; which++) {
		pid_t child = fork();
		check(child >= 0);
		if (child == 0) {
			/* One ends at once, one reads all, and one stores to all. */
			for (long page = 0; which > 0 && page < PAGES; page++) {
				expect_page(memory + page * PAGE, page, 3);
				if (which == 2)
					fill_page(memory + page * PAGE, page, 4);
			}
			for (long page = 0; which == 2 && page < PAGES; page++)
				expect_page(memory + page * PAGE, page, 4);
			_exit(0);
		}
		int ended;
		check(waitpid(child, &ended, 0) == child && ended == 0);
	}
	for (long page = 0; page < PAGES; page++) {
		expect_page(memory + page * PAGE, page, 3);
		fill_page(memory + page * PAGE, page, 5);
	}
	for (long page = 0; page < PAGES; page++)
		expect_page(memory + page * PAGE, page, 5);
	page_out(memory, PAGES);
	check(swapoff(DISK) == 0);
	check(status("VmSwap") <= LATE && information("SwapTotal") == 0);
	for (long page = 0; page < PAGES; page++)
		expect_page(memory + page * PAGE, page, 5);
	check(munmap(memory, PAGES * PAGE) == 0);
}

void calls(void)
{
	mistakes_are_told();
	pages_go_when_told_and_come_back();
	changes_of_the_mapping_keep_what_is_in_swap();
	a_child_has_what_was_in_swap();
}
