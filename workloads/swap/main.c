/* Swap: memory that goes to a disk and comes back as it was.
 *
 * /dev/vda is what is swapped to. The program writes the header itself, as mkswap would.
 */
#include "swap.h"

static void write_number(unsigned char *place, uint32_t number, int is_swapped)
{
	number = is_swapped ? __builtin_bswap32(number) : number;
	memcpy(place, &number, sizeof number);
}

long make_swap_of(const struct header *wanted)
{
	unsigned char first[PAGE] = {0};
	int disk = open(DISK, O_RDWR | O_CLOEXEC);
	check(disk >= 0);
	off_t size = lseek(disk, 0, SEEK_END);
	check(size > 0);
	long pages = wanted->pages ? wanted->pages : size / (off_t)PAGE;
	write_number(first + 1024, 1, wanted->is_swapped);
	write_number(first + 1028, (uint32_t)pages - 1, wanted->is_swapped);
	write_number(first + 1032, wanted->bad_count, wanted->is_swapped);
	for (size_t i = 0; i < sizeof wanted->bad / sizeof wanted->bad[0]; i++)
		write_number(first + 1536 + 4 * i, wanted->bad[i], wanted->is_swapped);
	memcpy(first + PAGE - 10, "SWAPSPACE2", 10);
	check(pwrite(disk, first, PAGE, 0) == (ssize_t)PAGE);
	check(fsync(disk) == 0 && close(disk) == 0);
	return pages - 1;
}

long make_swap(long pages)
{
	const struct header plain = {.pages = pages};
	return make_swap_of(&plain);
}

unsigned char *memory_of(long pages)
{
	unsigned char *memory =
	    mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static uint64_t word_of(long number, int round, size_t index)
{
	return ((uint64_t)number << 20 | (uint64_t)round << 9 | index) * 0x9e3779b97f4a7c15;
}

void fill_page(unsigned char *page, long number, int round)
{
	for (size_t i = 0; i < PAGE / 8; i++)
		((volatile uint64_t *)page)[i] = word_of(number, round, i);
}

void expect_page(const unsigned char *page, long number, int round)
{
	for (size_t i = 0; i < PAGE / 8; i++) {
		uint64_t found = ((const volatile uint64_t *)page)[i];
		if (found != word_of(number, round, i))
			fail("word %zu of page %ld is %016lx, which is not what round %d wrote", i, number, (unsigned long)found, round);
	}
}

long count(const char *row)
{
	return row_of("/proc/vmstat", row);
}

long information(const char *row)
{
	return row_of("/proc/meminfo", row) / 4;
}

long status(const char *row)
{
	return row_of("/proc/self/status", row) / 4;
}

int main(int argc, char **argv)
{
	const char *const options[] = {"case", "mebibytes", "times", NULL};
	only_options(argc, argv, options);
	const char *wanted = word_option(argc, argv, "case", "calls");
	long mebibytes = number_option(argc, argv, "mebibytes", 1, 64);
	long times = number_option(argc, argv, "times", 1, 1000);
	if (strcmp(wanted, "calls") == 0)
		calls();
	else if (strcmp(wanted, "pressure") == 0)
		pressure(mebibytes);
	else if (strcmp(wanted, "full") == 0)
		full(mebibytes);
	else if (strcmp(wanted, "stale") == 0)
		stale(times);
	else if (strcmp(wanted, "off") == 0)
		off();
	else if (strcmp(wanted, "off-without-room") == 0)
		off_without_room(mebibytes);
	else if (strcmp(wanted, "together") == 0)
		together(times);
	else
		refuse("--case %s: there is no such case", wanted);
	puts("ok");
	return 0;
}
