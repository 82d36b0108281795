/* Guarding pages against stores by a userfaultfd, for the programs that measure or test what that does to other CPUs. A store to a guarded
 * page is a SIGBUS: nobody waits for a monitor.
 */
#ifndef GUARD_H
#define GUARD_H

#include "workload.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int guard_monitor = -1;

/* Lets pages be guarded. */
static void watch_stores(volatile void *start, size_t length)
{
	if (guard_monitor < 0) {
		struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
		guard_monitor = syscall(SYS_userfaultfd, O_CLOEXEC);
		check(guard_monitor >= 0 && ioctl(guard_monitor, UFFDIO_API, &api) == 0);
	}
	struct uffdio_register range = {{(uintptr_t)start, length}, UFFDIO_REGISTER_MODE_WP, 0};
	check(ioctl(guard_monitor, UFFDIO_REGISTER, &range) == 0);
}

/* Guards pages, or takes their guards away. */
static void set_guard(volatile void *start, size_t length, int guard)
{
	struct uffdio_writeprotect range = {{(uintptr_t)start, length}, guard ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
	check(ioctl(guard_monitor, UFFDIO_WRITEPROTECT, &range) == 0);
}

#endif
