/* What the C workloads share: saying what failed, arguments, clocks, CPUs, and the interrupt rows of /proc.
 *
 * Everything here works the same on Linux and on Ceasefire. A failed check ends the whole process with status 1 after one
 * sentence on standard error; a wrong argument ends it with status 2.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

/* Ends the process with a sentence. Writes in one call, so that sentences of several threads do not mix. */
__attribute__((noreturn, format(printf, 2, 3), unused)) static void end_with(int status, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof text - 1, format, arguments);
	va_end(arguments);
	if (length < 0)
		length = 0;
	if (length > (int)sizeof text - 2)
		length = sizeof text - 2;
	text[length++] = '\n';
	if (write(2, text, length) < 0)
		_exit(status);
	_exit(status);
}

#define fail(...) end_with(1, __VA_ARGS__)
#define refuse(...) end_with(2, __VA_ARGS__)
#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail("%s:%d: not so: %s (errno %d, %s)", __FILE__, __LINE__, #condition, errno, \
			     strerror(errno));                                                     \
	} while (0)

/* Looks for `--name VALUE` among the arguments; a number of at least `least`, or `otherwise` if it is not given. */
__attribute__((unused)) static long number_option(int argc, char **argv, const char *name, long least, long otherwise)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, name) != 0)
			continue;
		if (i + 1 == argc)
			refuse("--%s needs a number", name);
		char *end;
		errno = 0;
		long value = strtol(argv[i + 1], &end, 10);
		if (errno || *end || end == argv[i + 1] || value < least)
			refuse("--%s %s: a whole number of at least %ld is needed", name, argv[i + 1], least);
		return value;
	}
	return otherwise;
}

/* Looks for `--name WORD`. */
__attribute__((unused)) static const char *word_option(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0) {
			if (i + 1 == argc)
				refuse("--%s needs a word", name);
			return argv[i + 1];
		}
	return otherwise;
}

/* Refuses every argument that is not one of `names` (a NULL-terminated list) followed by its value. */
__attribute__((unused)) static void only_options(int argc, char **argv, const char *const *names)
{
	for (int i = 1; i < argc; i += 2) {
		const char *const *name = names;
		while (*name && (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, *name) != 0))
			name++;
		if (!*name)
			refuse("%s: unknown option", argv[i]);
	}
}

/* One turn of a waiting loop. The pause lets an emulator that runs all CPUs in one thread go on to the next CPU. */
__attribute__((unused)) static inline void relax(void)
{
	__builtin_ia32_pause();
}

__attribute__((unused)) static inline uint64_t ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

__attribute__((unused)) static uint64_t nanoseconds(void)
{
	struct timespec now;
	check(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* CPUs this process may run on, at most `room`; their numbers go to `list`. */
__attribute__((unused)) static int allowed_cpus(int *list, int room)
{
	cpu_set_t set;
	check(sched_getaffinity(0, sizeof set, &set) == 0);
	int count = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < room; cpu++)
		if (CPU_ISSET(cpu, &set))
			list[count++] = cpu;
	return count;
}

/* Binds the calling thread to one CPU; it runs there when this returns. */
__attribute__((unused)) static void bind_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check(sched_setaffinity(0, sizeof set, &set) == 0);
}

/* A whole file, or its first 64 KB; good until the next call. NULL if it cannot be opened. */
__attribute__((unused)) static char *text_of(const char *path)
{
	static char text[65536];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return NULL;
	size_t length = 0;
	ssize_t got;
	while (length < sizeof text - 1 && (got = read(file, text + length, sizeof text - 1 - length)) > 0)
		length += (size_t)got;
	close(file);
	text[length] = 0;
	return text;
}

/* The number in one row of a file whose rows are "name number" or "name: number". */
__attribute__((unused)) static long row_of(const char *path, const char *name)
{
	char *text = text_of(path);
	size_t size = strlen(name);
	for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, size) == 0 && line[size] != 0 && strchr(": \t", line[size]))
			return strtol(line + size + 1, NULL, 10);
	fail("%s has no row %s", path, name);
}

/* Sum over the CPUs of one row of /proc/interrupts, as "TLB:"; -1 if there is no such row. */
__attribute__((unused)) static long interrupt_row(const char *row)
{
	char *text = text_of("/proc/interrupts");
	for (char *line = text; line; line = strchr(line, '\n')) {
		while (*line == '\n' || *line == ' ')
			line++;
		if (strncmp(line, row, strlen(row)) != 0)
			continue;
		long sum = 0;
		char *place = line + strlen(row), *end;
		for (;; place = end) {
			while (*place == ' ')
				place++;
			if (*place < '0' || *place > '9')
				return sum;
			sum += strtol(place, &end, 10);
		}
	}
	return -1;
}

__attribute__((unused)) static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

/* Sorts the samples and gives their median. */
__attribute__((unused)) static uint64_t median(uint64_t *samples, size_t count)
{
	qsort(samples, count, sizeof *samples, ascending);
	return samples[count / 2];
}

#endif
