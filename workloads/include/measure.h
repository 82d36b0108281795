/* What a workload of `./ceasefire bench` measures, and the line in which it says it (README.md, "Measurement lines").
 *
 * A measurement lasts from `begin` to `end`: the interrupt row is read just before and just after, so that it counts what the
 * measured loop caused, and nothing of the preparation. What must be prepared between the operations is left out by `pause_both` and
 * `resume_both`; where that happens so often that reading the row would be most of the work, only the clock is stopped
 * (`pause_clock`, `resume_clock`), and such preparations must cause no interrupts.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "workload.h"

/* The exit status of a program whose subject the system does not have, after a line `absent REASON`. */
#define ABSENT_STATUS 77

/* A case for which performance.md gives no lower bound. */
#define NO_BOUND (-1.0)

struct measurement {
	const char *row; /* of /proc/interrupts: "TLB:", or "CAL:" for barriers */
	long before, interrupts;
	int has_row;
	uint64_t started, time;
};

__attribute__((unused)) static void resume_clock(struct measurement *measurement)
{
	measurement->started = nanoseconds();
}

__attribute__((unused)) static void pause_clock(struct measurement *measurement)
{
	measurement->time += nanoseconds() - measurement->started;
}

__attribute__((unused)) static void resume_both(struct measurement *measurement)
{
	measurement->before = interrupt_row(measurement->row);
	resume_clock(measurement);
}

__attribute__((unused)) static void pause_both(struct measurement *measurement)
{
	pause_clock(measurement);
	long after = interrupt_row(measurement->row);
	measurement->has_row = measurement->before >= 0 && after >= 0;
	measurement->interrupts += after - measurement->before;
}

/* Begins to count in `row`, and starts the clock. */
__attribute__((unused)) static struct measurement begin(const char *row)
{
	struct measurement measurement = {.row = row};
	resume_both(&measurement);
	return measurement;
}

/* Begins to count; the clock stands. */
__attribute__((unused)) static struct measurement begin_with_clock_paused(const char *row)
{
	struct measurement measurement = begin(row);
	measurement.time = 0;
	return measurement;
}

__attribute__((unused)) static void end(struct measurement *measurement)
{
	pause_both(measurement);
}

/* Ends a measurement whose clock stands. */
__attribute__((unused)) static void end_with_clock_paused(struct measurement *measurement)
{
	uint64_t time = measurement->time;
	pause_both(measurement);
	measurement->time = time;
}

/* Prints the line. `name` is NULL for a workload with one case only; `bound` is the lower bound in interrupts per operation; `figures` are
 * further words, each after a blank ("" for none). */
__attribute__((unused)) static void print_measurement(const struct measurement *measurement, const char *name, long threads,
						      long operations, double bound, const char *figures)
{
	if (name)
		printf("case=%s ", name);
	printf("threads=%ld operations=%ld interrupts=%ld", threads, operations,
	       measurement->has_row ? measurement->interrupts : -1);
	if (bound >= 0)
		printf(" bound=%.6g", bound);
	printf(" ns_per_op=%llu%s\n", (unsigned long long)(measurement->time / (uint64_t)operations), figures);
	fflush(stdout);
}

/* Says that the system lacks what one case needs; the others go on. */
__attribute__((unused)) static void case_is_absent(const char *name, const char *reason)
{
	printf("absent case=%s %s\n", name, reason);
}

/* Says that the system lacks what the whole program is about, and ends it. */
__attribute__((noreturn, unused)) static void all_is_absent(const char *reason)
{
	printf("absent %s\n", reason);
	exit(ABSENT_STATUS);
}

#endif
