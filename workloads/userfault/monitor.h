/* What all parts share: a userfaultfd, its requests, the events that are read from it, and threads that take faults meanwhile. */
#ifndef MONITOR_H
#define MONITOR_H

#define _GNU_SOURCE
#include "../include/expected-errors.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MISSING UFFDIO_REGISTER_MODE_MISSING
#define STORES UFFDIO_REGISTER_MODE_WP
#define MINOR UFFDIO_REGISTER_MODE_MINOR

static long userfaultfd(int flags)
{
	return syscall(SYS_userfaultfd, flags);
}

/* One with these features agreed upon. */
static int monitor_with(int flags, uint64_t features)
{
	int monitor = userfaultfd(flags);
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	check(monitor >= 0 && ioctl(monitor, UFFDIO_API, &api) == 0);
	return monitor;
}

static char *map(int pages, int flags)
{
	char *memory = mmap(NULL, pages * PAGE, READ_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	check(memory != MAP_FAILED);
	return memory;
}

static int register_range(int monitor, void *start, size_t length, uint64_t mode, uint64_t *requests)
{
	struct uffdio_register request = { { (uintptr_t)start, length }, mode, 0 };
	int result = ioctl(monitor, UFFDIO_REGISTER, &request);
	if (requests)
		*requests = request.ioctls;
	return result;
}

static void watch(int monitor, void *start, int pages, uint64_t mode)
{
	check(register_range(monitor, start, pages * PAGE, mode, NULL) == 0);
}

static int unregister_range(int monitor, void *start, size_t length)
{
	struct uffdio_range range = { (uintptr_t)start, length };
	return ioctl(monitor, UFFDIO_UNREGISTER, &range);
}

static int wake(int monitor, void *start, size_t length)
{
	struct uffdio_range range = { (uintptr_t)start, length };
	return ioctl(monitor, UFFDIO_WAKE, &range);
}

/* What the last request to fill pages in has answered. */
static int64_t filled;

static int copy_range(int monitor, void *target, const void *source, size_t length, uint64_t mode)
{
	struct uffdio_copy copy = { (uintptr_t)target, (uintptr_t)source, length, mode, 77 };
	int result = ioctl(monitor, UFFDIO_COPY, &copy);
	filled = copy.copy;
	return result;
}

static int zero_range(int monitor, void *target, size_t length, uint64_t mode)
{
	struct uffdio_zeropage zero = { { (uintptr_t)target, length }, mode, 77 };
	int result = ioctl(monitor, UFFDIO_ZEROPAGE, &zero);
	filled = zero.zeropage;
	return result;
}

static int continue_range(int monitor, void *target, size_t length, uint64_t mode)
{
	struct uffdio_continue own = { { (uintptr_t)target, length }, mode, 77 };
	int result = ioctl(monitor, UFFDIO_CONTINUE, &own);
	filled = own.mapped;
	return result;
}

static int guard_range(int monitor, void *start, size_t length, uint64_t mode)
{
	struct uffdio_writeprotect guard = { { (uintptr_t)start, length }, mode };
	return ioctl(monitor, UFFDIO_WRITEPROTECT, &guard);
}

/* A page that holds this byte everywhere. */
static char *page_of(char byte)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	memset(page, byte, PAGE);
	return page;
}

static void fill(int monitor, void *page, char byte)
{
	check(copy_range(monitor, page, page_of(byte), PAGE, 0) == 0 && filled == (int64_t)PAGE);
}

/* ---- events ---- */

static struct uffd_msg read_event(int monitor, int wanted)
{
	struct uffd_msg event;
	memset(&event, 0xff, sizeof event);
	ssize_t got = read(monitor, &event, sizeof event);
	if (got != sizeof event)
		fail("a read of an event: %zd (%s)", got, strerror(errno));
	if (event.event != wanted)
		fail("event %#x came, not %#x", event.event, wanted);
	return event;
}

/* Reads a fault, which must be this one. */
static void read_fault(int monitor, void *address, uint64_t flags)
{
	struct uffd_msg event = read_event(monitor, UFFD_EVENT_PAGEFAULT);
	if (event.arg.pagefault.address != (uintptr_t)address || event.arg.pagefault.flags != flags)
		fail("a fault at %llx with %llx came, not one at %p with %lx", event.arg.pagefault.address,
		     event.arg.pagefault.flags, address, flags);
}

static void expect_nothing(int monitor)
{
	struct uffd_msg event;
	int flags = fcntl(monitor, F_GETFL);
	check(fcntl(monitor, F_SETFL, flags | O_NONBLOCK) == 0);
	check(read(monitor, &event, sizeof event) == -1 && errno == EAGAIN);
	check(fcntl(monitor, F_SETFL, flags) == 0);
}

/* ---- threads that take faults ---- */

struct work {
	long (*run)(struct work *work);
	char *place;
	long number; /* what it stores, or how many bytes */
	long result;
	int thread_id;
	volatile int is_over;
	pthread_t thread;
};

static void *work_body(void *argument)
{
	struct work *work = argument;
	work->thread_id = syscall(SYS_gettid);
	work->result = work->run(work);
	__atomic_store_n(&work->is_over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start(struct work *work, long (*run)(struct work *), char *place, long number)
{
	*work = (struct work){ .run = run, .place = place, .number = number };
	check(pthread_create(&work->thread, NULL, work_body, work) == 0);
}

static long finish(struct work *work)
{
	check(pthread_join(work->thread, NULL) == 0);
	return work->result;
}

/* Gives the thread time to go on, if it could. */
static void expect_waiting(struct work *work)
{
	for (int i = 0; i < 20; i++)
		usleep(500);
	check(!__atomic_load_n(&work->is_over, __ATOMIC_ACQUIRE));
}

static long load_byte(struct work *work)
{
	return *(volatile char *)work->place;
}

static long store_byte(struct work *work)
{
	*(volatile char *)work->place = work->number;
	return 0;
}

/* ---- what accesses find: the signal and its code, or 0 ---- */

static __thread sigjmp_buf back;
static __thread volatile int signal_seen;

static void on_fault(int number, siginfo_t *information, void *context)
{
	(void)context;
	signal_seen = number * 100 + information->si_code;
	siglongjmp(back, 1);
}

#define MAPPING_ERROR (SIGSEGV * 100 + SEGV_MAPERR)
#define ACCESS_ERROR (SIGSEGV * 100 + SEGV_ACCERR)
#define BUS_ERROR (SIGBUS * 100 + BUS_ADRERR)

static int load(volatile char *address)
{
	signal_seen = 0;
	if (!sigsetjmp(back, 1))
		(void)*address;
	return signal_seen;
}

static int store(volatile char *address)
{
	signal_seen = 0;
	if (!sigsetjmp(back, 1))
		*address = 77;
	return signal_seen;
}

__attribute__((unused)) static long load_or_signal(struct work *work)
{
	return load(work->place);
}

#endif
