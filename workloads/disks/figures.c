/* What /proc/meminfo and /proc/vmstat say of the pages of /dev/vda: each figure moves as far as what is done moves it.
 *
 * The disk is larger than memory. Linux keeps some counts on each CPU for a while, and reads ahead further; so there is some room in each
 * comparison, and none in what must not move at all.
 */
#include "disks.h"
#include <sys/mman.h>

#define PART 2048L

static int disk;
static unsigned char *mapped;
static long pages;

static long count(const char *name)
{
	return row_of("/proc/vmstat", name);
}

/* Pages that a row of /proc/meminfo stands for. */
static long information(const char *name)
{
	return row_of("/proc/meminfo", name) / 4;
}

static void about(const char *what, long found, long wanted)
{
	if (found < wanted - wanted / 8 - 64 || found > wanted + wanted / 8 + 64)
		fail("%s is %ld instead of about %ld", what, found, wanted);
}

static void at_least(const char *what, long found, long wanted)
{
	if (found < wanted)
		fail("%s is %ld, not even %ld", what, found, wanted);
}

static void at_most(const char *what, long found, long wanted)
{
	if (found > wanted)
		fail("%s is %ld, more than %ld", what, found, wanted);
}

static void read_pages(long first, long number)
{
	static unsigned char bytes[16 * PAGE];
	for (long page = first; page < first + number; page += 16)
		check(pread(disk, bytes, sizeof bytes, page * PAGE) == sizeof bytes);
}

static void pages_that_are_read_are_idle_and_then_in_use(void)
{
	long idle = count("nr_inactive_file"), used = count("nr_active_file"), came = count("pgpgin");
	long activated = count("pgactivate"), buffers = information("Buffers");
	read_pages(0, PART);
	about("nr_inactive_file", count("nr_inactive_file") - idle, PART);
	about("Inactive(file)", information("Inactive(file)"), idle + PART);
	about("Buffers", information("Buffers") - buffers, PART);
	about("pgpgin", (count("pgpgin") - came) / 4, PART);
	at_most("nr_active_file", count("nr_active_file") - used, 64);
	read_pages(0, PART);
	about("nr_active_file", count("nr_active_file") - used, PART);
	about("Active(file)", information("Active(file)"), used + PART);
	about("pgactivate", count("pgactivate") - activated, PART);
	about("nr_inactive_file", count("nr_inactive_file"), idle);
}

static void pages_that_are_stored_to_are_dirty_until_they_are_written(void)
{
	long went = count("pgpgout");
	check(fsync(disk) == 0);
	long dirty = information("Dirty");
	at_most("Dirty", dirty, 64);
	for (long page = 0; page < PART; page++) {
		word one = content((uint64_t)page * PAGE, 1);
		if (page % 2)
			memcpy(mapped + page * PAGE, &one, sizeof one);
		else
			check(pwrite(disk, &one, sizeof one, page * PAGE) == sizeof one);
	}
	about("Dirty", information("Dirty") - dirty, PART);
	about("nr_dirty", count("nr_dirty") - dirty, PART);
	/* As it was. */
	for (long page = 0; page < PART; page++) {
		word one = content((uint64_t)page * PAGE, 0);
		memcpy(mapped + page * PAGE, &one, sizeof one);
	}
	check(fsync(disk) == 0);
	at_most("Dirty", information("Dirty"), 64);
	at_most("Writeback", information("Writeback"), 64);
	about("pgpgout", (count("pgpgout") - went) / 4, PART);
}

static void pages_that_stream_by_are_looked_at_and_taken_back(void)
{
	long kswapd[] = {count("pgscan_kswapd"), count("pgsteal_kswapd")}, direct[] = {count("pgscan_direct"), count("pgsteal_direct")};
	long waits = count("pgmajfault"), refaults = count("workingset_refault_file");
	for (int pass = 0; pass < 2; pass++)
		read_pages(PART, (pages - PART) / 16 * 16);
	long looked = count("pgscan_kswapd") - kswapd[0] + count("pgscan_direct") - direct[0];
	long taken = count("pgsteal_kswapd") - kswapd[1] + count("pgsteal_direct") - direct[1];
	at_least("pgscan", looked, taken);
	at_least("pgsteal", taken, pages);
	/* Who reads does not have to make room himself. */
	at_least("pgsteal_kswapd", count("pgsteal_kswapd") - kswapd[1], taken / 2);
	at_least("workingset_refault_file", count("workingset_refault_file") - refaults, pages / 4);
	for (long page = PART; page < PART + 64 * 256; page += 256)
		check(*(volatile unsigned char *)(mapped + page * PAGE) == (unsigned char)(page * (PAGE / 8)));
	at_least("pgmajfault", count("pgmajfault") - waits, 60);
}

void figures(void)
{
	uint64_t size;
	disk = open_disk("/dev/vda", O_RDWR, &size);
	pages = (long)(size / PAGE);
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, disk, 0);
	check(mapped != MAP_FAILED);
	check(madvise(mapped, size, MADV_RANDOM) == 0);
	pages_that_are_read_are_idle_and_then_in_use();
	pages_that_are_stored_to_are_dirty_until_they_are_written();
	pages_that_stream_by_are_looked_at_and_taken_back();
}
