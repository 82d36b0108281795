/* What the parts of the first program share: the way out to the host, and reading files.
 */
#pragma once
#include "../include/workload.h"

enum { LOG = 0x400, ERRORS = 0x404, REPORT = 0x406, OUTPUT = 0x408, OFF = 0xf4 };

#define MOST_CPUS 64

extern int cpu_count;

void put(int port, const char *bytes, size_t length);
__attribute__((format(printf, 2, 3))) void print(int port, const char *format, ...);

/* Says what is wrong, with errno's reason, on the log and ends the machine as a panic would. */
__attribute__((noreturn)) void give_up(const char *what);

/* Reads a file to its end or until there is no more room; ends it with NUL. The length, 0 when it is not there. */
size_t read_whole(const char *path, char *text, size_t room);

/* One row of the report's ledger; a comma comes before all but the first. */
void report_row(const char *group, const char *name, const long long *per_cpu, int count);

/* counts.c: the kernel's own counters, read at two instants; then the differences as rows of the ledger. */
enum instant { BEFORE, AFTER };
void read_counters(enum instant when);
void report_counters(void);

/* flushes.c: flushes of translations by reason, CPU and extent, from the trace event tlb:tlb_flush. */
void trace_flushes(void);
void stop_tracing(void);
void report_flushes(void);

/* disk.c: the disks that the host ordered. */
void prepare_disks(void);
