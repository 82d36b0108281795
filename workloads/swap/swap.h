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
