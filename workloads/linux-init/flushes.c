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
 */
#include "peer.h"
#include <sys/stat.h>

#define EVENT "/sys/kernel/tracing/events/tlb/tlb_flush/"
#define TRIGGER "hist:keys=reason,pages,common_cpu:size=4096"

static const char *const reasons[] = {
    "task_switch", "remote_shootdown", "local_shootdown", "local_mm_shootdown", "remote_ipi_send",
};
#define REASONS 5
static const char *const extents[] = {"full", "range", "page"};
enum { FULL, RANGE, SINGLE, EXTENTS };

static int tracing;
static long long flushes[REASONS][EXTENTS][MOST_CPUS];

static int write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
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
	if (write_text(EVENT "trigger", TRIGGER) != 0)
		give_up("this kernel cannot count flushes by reason (tlb:tlb_flush with histograms)");
	tracing = 1;
}

void stop_tracing(void)
{
	static char text[1 << 20];
	if (!tracing)
		return;
	if (write_text(EVENT "trigger", TRIGGER ":pause") != 0)
		give_up("pause the count of flushes");
	read_whole(EVENT "hist", text, sizeof text);
	/* { reason: 1, pages: 18446744073709551615, common_cpu: 2 } hitcount: 30 */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long long pages;
		long long count;
		int reason, cpu;
		char *place = strstr(line, "reason:");
		if (!place || sscanf(place, "reason: %d , pages: %llu , common_cpu: %d } hitcount: %lld", &reason, &pages, &cpu, &count) != 4)
			continue;
		if (reason >= 0 && reason < REASONS && cpu >= 0 && cpu < MOST_CPUS)
			flushes[reason][pages == 1 ? SINGLE : (long long)pages < 0 ? FULL : RANGE][cpu] += count;
	}
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
}
