/* What the cases share: the disks' content and the calls that move it.
 *
 * Each 8 bytes of a disk say where they lie (their offset divided by 8, in the low 40 bits) and in which round they were written (above).
 * The host fills disks with round 0 before a test, and looks for the last round afterwards, in the file that is the disk.
 */
#pragma once
#include "../include/workload.h"

typedef uint64_t word;

static inline word content(uint64_t offset, int round)
{
	return offset / 8 | (word)round << 40;
}

/* Fills `bytes` with what a disk has at `offset` in a round. Neither offset nor length need be a multiple of 8. */
void fill(unsigned char *bytes, size_t length, uint64_t offset, int round);

/* Ends the test if `bytes` is not what a disk has there in that round. */
void expect(const unsigned char *bytes, size_t length, uint64_t offset, int round, const char *path);

/* Opens a disk and says its size. */
int open_disk(const char *path, int flags, uint64_t *size);

/* calls.c: every call on a disk that has an answer, and the answers to mistakes. */
void calls(void);

/* paths.c: calls, mappings and processes see each other's bytes. */
void paths(void);

/* many.c: threads beside each other, on a disk that may be larger than memory. */
void many(void);

/* set.c: what is used again stays in memory while the rest of the disk streams by. */
void set(void);

/* figures.c: what /proc/meminfo and /proc/vmstat say of the disk's pages is what was done with them. */
void figures(void);

/* beside.c: a disk that fills memory leaves room for files in memory and for what is sent. */
void beside(void);
