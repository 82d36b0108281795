/* Threads and processes that go through iterations together: each says how far it is, and the others wait for that by spinning, never in
 * the kernel unless they ask for it (`wait_calling`). So who is in user mode stays there.
 */
#ifndef HAND_OVER_H
#define HAND_OVER_H

#include "workload.h"
#include <sys/mman.h>
#include <sys/syscall.h>

/* One cache line for each who says something. */
struct line {
	long value;
} __attribute__((aligned(64)));

/* Memory of all processes that are forked from here on: a page of the program's own would be copied, and the copy might not be seen. The
 * hand-over must not depend on what is tested. */
static void *shared_memory(size_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static void say(struct line *line, long value)
{
	__atomic_store_n(&line->value, value, __ATOMIC_RELEASE);
}

static long said(struct line *line)
{
	return __atomic_load_n(&line->value, __ATOMIC_ACQUIRE);
}

static void wait_for(struct line *line, long value)
{
	while (said(line) != value)
		relax();
}

/* Waits by system calls that do next to nothing: the CPU is in the kernel half of the time. */
static void wait_calling(struct line *line, long value)
{
	while (said(line) != value)
		syscall(SYS_getppid);
}

static void wait_for_each(struct line *lines, int count, long value)
{
	for (int i = 0; i < count; i++)
		wait_for(&lines[i], value);
}

#endif
