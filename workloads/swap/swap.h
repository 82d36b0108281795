/* What the cases share: a disk made ready for swap, and what memory holds. */
#pragma once
#include "../include/workload.h"
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define DISK "/dev/vda"

/* Writes the header that mkswap would, for so many pages (0: all of the disk); says how many slots there are. */
long make_swap(long pages);

/* The same with some more: numbers in the other order of bytes, and pages that are bad, of which so many are told. */
struct header {
	long pages;
	int is_swapped;
	uint32_t bad_count;
	uint32_t bad[637];
};
long make_swap_of(const struct header *wanted);

/* Private anonymous memory of so many pages. */
unsigned char *memory_of(long pages);

/* Fills a page with what only that page of that owner has in that round, and checks it, every byte. */
void fill_page(unsigned char *page, long number, int round);
void expect_page(const unsigned char *page, long number, int round);

/* A row of /proc/vmstat; of /proc/meminfo and /proc/self/status in pages. */
long count(const char *row);
long information(const char *row);
long status(const char *row);

void calls(void);
void pressure(long mebibytes);
void full(long mebibytes);
void stale(long times);
void off(void);
void off_without_room(long mebibytes);
void together(long times);
