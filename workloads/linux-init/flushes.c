/* Flushes of translations by reason and extent, when the host asked for them.
 *
 * The kernel's trace event tlb:tlb_flush says at each flush why it was made and how many pages it covered; a histogram kept by the
 * kernel sums them up by reason, pages and CPU, so nothing has to be carried out of the kernel while the program runs. Still, each
 * event costs time: a traced run is never a timed one.
 *
 * The rows are named REASON.EXTENT. Reasons, as the kernel numbers them: 0 the CPU went over to another address space; 1 another CPU
 * asked for it, by interrupt (as many as the row TLB counts); 2 and 3 the CPU itself made the change, in the kernel's own
 * translations or in a program's; 4 other CPUs were considered. The last is traced before idle CPUs are filtered out, so it says
 * nothing about interrupts sent. Extents: full (everything), page (one), range (what lies between).
 *
 * A second histogram keeps the kernel's stack at each change of translations (reasons 2 to 4); the innermost system call or exception on it
 * is the cause. Its rows are `linux.cause`, for the whole machine: CALL.own for flushes on the CPU that made the change, CALL.others
 * where other CPUs were considered too. A kernel that cannot keep stacks gives none of these rows.
 */
#include "peer.h"
#include <sys/stat.h>

#define EVENT "/sys/kernel/tracing/events/tlb/tlb_flush/"
#define EXTENTS_TRIGGER "hist:keys=reason,pages,common_cpu:size=4096"
#define CAUSES_TRIGGER "hist:keys=reason,stacktrace:size=4096 if reason >= 2"

static const char *const reasons[] = {
    "task_switch", "remote_shootdown", "local_shootdown", "local_mm_shootdown", "remote_ipi_send",
};
#define REASONS 5
static const char *const extents[] = {"full", "range", "page"};
enum { FULL, RANGE, SINGLE, EXTENTS };

/* Of the flushes, as the event numbers them. */
enum { CONSIDERED_OTHERS = 4 };

#define MOST_CAUSES 64
static struct cause {
	char name[48];
	long long own, others;
} causes[MOST_CAUSES];

static int tracing;
static long long flushes[REASONS][EXTENTS][MOST_CPUS];

/* Adds to a file: for triggers, one more. */
static int write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (file < 0)
		return -1;
	ssize_t written = write(file, text, strlen(text));
	close(file);
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

void trace_flushes(void)
{
	struct stat order;
	if (stat("/.ceasefire/trace", &order) != 0)
		return;
	if (write_text(EVENT "trigger", EXTENTS_TRIGGER) != 0)
		give_up("this kernel cannot count flushes by reason (tlb:tlb_flush with histograms)");
	write_text(EVENT "trigger", CAUSES_TRIGGER);
	tracing = 1;
}

/* { reason: 1, pages: 18446744073709551615, common_cpu: 2 } hitcount: 30 */
static int count_extent(const char *entry)
{
	unsigned long long pages;
	long long count;
	int reason, cpu;
	if (sscanf(entry, "reason: %d , pages: %llu , common_cpu: %d } hitcount: %lld", &reason, &pages, &cpu, &count) != 4)
		return 0;
	if (reason >= 0 && reason < REASONS && cpu >= 0 && cpu < MOST_CPUS)
		flushes[reason][pages == 1 ? SINGLE : (long long)pages < 0 ? FULL : RANGE][cpu] += count;
	return 1;
}

/* The cause that a line of a stack stands for, such as `__x64_sys_munmap+0x17/0x20`; 0 when it is none. */
static int cause_of(const char *line, char *name)
{
	static const char *const prefixes[] = {"__x64_sys_", "__do_sys_"};
	line += strspn(line, " ");
	for (int i = 0; i < 2; i++)
		if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
			return sscanf(line + strlen(prefixes[i]), "%40[a-z0-9_]", name) == 1;
	if (strncmp(line, "exc_page_fault", 14) == 0)
		strcpy(name, "page_fault");
	return strncmp(line, "exc_page_fault", 14) == 0;
}

static void count_cause(const char *name, int reason, long long count)
{
	for (struct cause *cause = causes; cause < causes + MOST_CAUSES; cause++) {
		if (!cause->name[0])
			strcpy(cause->name, name);
		if (strcmp(cause->name, name) == 0) {
			*(reason == CONSIDERED_OTHERS ? &cause->others : &cause->own) += count;
			return;
		}
	}
}

/* Reads both histograms. An entry with a stack has one line for each of its functions, the innermost first. */
static void read_histograms(char *text)
{
	char name[48];
	int reason = -1, found = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *entry = strstr(line, "reason:"), *end = strstr(line, "} hitcount:");
		if (entry && count_extent(entry))
			continue;
		if (entry && strstr(entry, "stacktrace:")) {
			reason = atoi(entry + strlen("reason:"));
			found = 0;
			strcpy(name, "other");
		} else if (end && reason >= 0) {
			count_cause(name, reason, atoll(end + strlen("} hitcount:")));
			reason = -1;
		} else if (!found) {
			found = cause_of(line, name);
		}
	}
}

void stop_tracing(void)
{
	static char text[1 << 22];
	if (!tracing)
		return;
	if (write_text(EVENT "trigger", EXTENTS_TRIGGER ":pause") != 0)
		give_up("pause the count of flushes");
	read_whole(EVENT "hist", text, sizeof text);
	read_histograms(text);
}

void report_flushes(void)
{
	if (!tracing)
		return;
	for (int reason = 0; reason < REASONS; reason++)
		for (int extent = 0; extent < EXTENTS; extent++) {
			char name[64];
			snprintf(name, sizeof name, "%s.%s", reasons[reason], extents[extent]);
			report_row("linux.flush", name, flushes[reason][extent], cpu_count);
		}
	for (const struct cause *cause = causes; cause < causes + MOST_CAUSES && cause->name[0]; cause++) {
		char name[64];
		snprintf(name, sizeof name, "%.47s.own", cause->name);
		report_row("linux.cause", name, &cause->own, 1);
		snprintf(name, sizeof name, "%.47s.others", cause->name);
		report_row("linux.cause", name, &cause->others, 1);
	}
}
