/* The interface of restartable sequences as programs see it: the area and a sequence in memory, the call, and the registration that the
 * C library may have made before main. */
#ifndef SEQUENCES_INTERFACE_H
#define SEQUENCES_INTERFACE_H

#include "../include/workload.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define SIGNATURE 0x53053053u
#define OTHER_SIGNATURE 0x12345678u
#define UNREGISTER 1

/* The interface's own layout; headers that have it are not everywhere. */
struct area {
	uint32_t cpu_start;
	uint32_t cpu;
	uint64_t sequence;
	uint32_t flags;
	uint32_t reserved[3];
} __attribute__((aligned(32)));

struct sequence {
	uint32_t version;
	uint32_t flags;
	uint64_t start;
	uint64_t length;
	uint64_t abort;
} __attribute__((aligned(32)));

_Static_assert(sizeof(struct area) == 32 && sizeof(struct sequence) == 32, "the layout is the interface");

static __thread struct area area;

static int rseq(void *where, uint32_t size, int flags, uint32_t signature)
{
	return (int)syscall(SYS_rseq, where, size, flags, signature);
}

static void refuses(void *where, uint32_t size, int flags, uint32_t signature, int error)
{
	errno = 0;
	int result = rseq(where, size, flags, signature);
	if (result != -1 || errno != error)
		fail("rseq(%p, %u, %d, %#x) gave %d (%s), not %s", where, size, flags, signature, result, strerror(errno), strerror(error));
}

/* glibc registers an area of its own for each thread, where it says. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static void take_back_the_library_s(void)
{
	if (&__rseq_size == NULL || __rseq_size == 0)
		return;
	char *thread_pointer = __builtin_thread_pointer();
	if (rseq(thread_pointer + __rseq_offset, sizeof(struct area), UNREGISTER, SIGNATURE) != 0 && errno != EINVAL)
		fail("cannot take back the library's registration: %s", strerror(errno));
}

static void enter(void)
{
	take_back_the_library_s();
	memset(&area, 0, sizeof area);
	check(rseq(&area, sizeof area, 0, SIGNATURE) == 0);
}

static void leave(void)
{
	check(rseq(&area, sizeof area, UNREGISTER, SIGNATURE) == 0);
}

#endif
