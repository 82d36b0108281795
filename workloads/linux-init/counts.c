/* What the kernel counts by itself: /proc/interrupts, /proc/stat and /proc/vmstat, as differences over the program's life.
 *
 * Rows `linux` are those of /proc/interrupts that have to do with coherence and scheduling. Rows `linux.stat` are the columns of
 * /proc/stat, in ticks of 10 ms of each CPU. Rows `linux.vmstat` are those of /proc/vmstat that changed, for the whole machine; what
 * shrank (a free count) cannot be told in a ledger of counts and is named NAME.less.
 */
#include "peer.h"

static const char *const interrupts[] = {"TLB", "CAL", "RES", "LOC"};
#define INTERRUPTS (sizeof interrupts / sizeof *interrupts)
static const char *const columns[] = {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"};
#define COLUMNS (sizeof columns / sizeof *columns)

static long long interrupted[2][INTERRUPTS][MOST_CPUS], spent[2][COLUMNS][MOST_CPUS];
static char memory[2][1 << 15];

static void read_interrupts(enum instant when)
{
	static char text[1 << 18];
	read_whole("/proc/interrupts", text, sizeof text);
	for (size_t row = 0; row < INTERRUPTS; row++) {
		char label[8];
		snprintf(label, sizeof label, "%s:", interrupts[row]);
		char *place = strstr(text, label);
		if (!place)
			continue;
		place += strlen(label);
		for (int cpu = 0; cpu < cpu_count; cpu++)
			interrupted[when][row][cpu] = strtoll(place, &place, 10);
	}
}

static void read_times(enum instant when)
{
	static char text[1 << 16];
	read_whole("/proc/stat", text, sizeof text);
	for (int cpu = 0; cpu < cpu_count; cpu++) {
		char label[16];
		snprintf(label, sizeof label, "\ncpu%d ", cpu);
		char *place = strstr(text, label);
		if (!place)
			continue;
		place += strlen(label);
		for (size_t column = 0; column < COLUMNS; column++)
			spent[when][column][cpu] = strtoll(place, &place, 10);
	}
}

/* The last to be read before the program and the first after it are the counts that matter most. */
void read_counters(enum instant when)
{
	if (when == AFTER)
		read_interrupts(when);
	read_times(when);
	read_whole("/proc/vmstat", memory[when], sizeof memory[when]);
	if (when == BEFORE)
		read_interrupts(when);
}

static void report_differences(const char *group, const char *name, const long long *before, const long long *after)
{
	long long difference[MOST_CPUS];
	for (int cpu = 0; cpu < cpu_count; cpu++)
		difference[cpu] = after[cpu] > before[cpu] ? after[cpu] - before[cpu] : 0;
	report_row(group, name, difference, cpu_count);
}

/* Both readings have the same rows in the same order. */
static void report_memory(void)
{
	char *before = memory[BEFORE], *after = memory[AFTER];
	char name[128], same[128];
	long long then, now;
	int length, length_after;
	while (sscanf(before, "%100s %lld\n%n", name, &then, &length) == 2 &&
	       sscanf(after, "%100s %lld\n%n", same, &now, &length_after) == 2 && strcmp(name, same) == 0) {
		long long difference = now > then ? now - then : then - now;
		if (now < then)
			strcat(name, ".less");
		if (difference)
			report_row("linux.vmstat", name, &difference, 1);
		before += length;
		after += length_after;
	}
}

void report_counters(void)
{
	for (size_t row = 0; row < INTERRUPTS; row++)
		report_differences("linux", interrupts[row], interrupted[BEFORE][row], interrupted[AFTER][row]);
	for (size_t column = 0; column < COLUMNS; column++)
		report_differences("linux.stat", columns[column], spent[BEFORE][column], spent[AFTER][column]);
	report_memory();
}
