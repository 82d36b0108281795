/* For programs that hold each call against the manual pages' ERRORS: a call fails as it says there, or ends the process with a sentence that
 * names the line and the call.
 */
#pragma once
#include "workload.h"
#include <sys/mman.h>

#define READ_WRITE (PROT_READ | PROT_WRITE)
#define SOMEBODY 1000 /* a user without rights */

/* Where user memory may be, and none is. */
__attribute__((unused)) static void *const nowhere = (void *)0x100000;

static void expect(int wanted, int succeeded, const char *call, int line)
{
	int got = succeeded ? 0 : errno;
	if (got != wanted)
		fail("line %d: %s: %s, not %s", line, call, got ? strerror(got) : "success", wanted ? strerror(wanted) : "success");
}

/* The call fails with this errno; 0: it succeeds. -1, or MAP_FAILED, says that it failed. */
#define EXPECT(wanted, call) expect(wanted, (long)(call) != -1, #call, __LINE__)

/* New anonymous memory. */
__attribute__((unused)) static char *fresh(size_t pages, int protection, int flags)
{
	char *memory = mmap(NULL, pages * PAGE, protection, MAP_ANONYMOUS | flags, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}
