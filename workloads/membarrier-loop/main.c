/* S2's loop: membarrier calls beside T spinning threads, T from 1 to 7 as far as there are CPUs; first expedited calls, then delayed ones.
 *
 * Expedited is MEMBARRIER_CMD_PRIVATE_EXPEDITED today, delayed is MEMBARRIER_CMD_GLOBAL. The interrupts of a barrier are no
 * flushes: they are in the row CAL.
 *
 * The caller pauses after each call. Where one emulator thread runs all CPUs in turn, a spinning thread may stand still in a timer
 * interrupt, and a kernel that need not interrupt it there would make hundreds of calls before it goes on.
 *
 * Bound: a thread that spins in user mode executes no barrier unless it is interrupted, and an expedited call returns long before it
 * would be interrupted for another reason: one interrupt for each spinning thread. A delayed call may wait until every CPU has
 * passed through its kernel anyway (a tick does): none.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <linux/membarrier.h>
#include <sys/syscall.h>

#define MOST_BESIDE 7

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void measure(const char *kind, int command, int spinning, long calls, double bound)
{
	start_beside(spinning, spin);
	struct measurement loop = begin("CAL:");
	for (long i = 0; i < calls; i++) {
		check(membarrier(command) == 0);
		relax();
	}
	end(&loop);
	end_beside();
	char name[32];
	snprintf(name, sizeof name, "%s-%d", kind, spinning);
	print_measurement(&loop, name, spinning + 1, calls, bound, "");
}

static void measure_expedited(int most, long calls)
{
	check(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0);
	for (int spinning = 1; spinning <= most; spinning++)
		measure("expedited", MEMBARRIER_CMD_PRIVATE_EXPEDITED, spinning, calls, spinning);
}

/* The number of threads does not matter to a delayed call: the fewest and the most will do. */
static void measure_delayed(int most, long calls)
{
	measure("delayed", MEMBARRIER_CMD_GLOBAL, 1, calls, 0);
	if (most > 1)
		measure("delayed", MEMBARRIER_CMD_GLOBAL, most, calls, 0);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"calls", "delayed", NULL};
	only_options(argc, argv, options);
	long calls = number_option(argc, argv, "calls", 1, 20000), delayed = number_option(argc, argv, "delayed", 1, 20);
	take_first_cpu();
	if (cpu_count < 2)
		refuse("a thread must spin on another CPU: two CPUs are needed");
	int most = cpu_count - 1 < MOST_BESIDE ? cpu_count - 1 : MOST_BESIDE;
	long known = membarrier(MEMBARRIER_CMD_QUERY);
	if (known < 0 && errno == ENOSYS)
		all_is_absent("The kernel has no membarrier system call.");
	check(known >= 0);
	if (!(known & (MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_GLOBAL)))
		all_is_absent("The kernel's membarrier has neither expedited nor delayed calls.");
	if (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		measure_expedited(most, calls);
	else
		case_is_absent("expedited-1", "The kernel's membarrier has no expedited calls.");
	if (known & MEMBARRIER_CMD_GLOBAL)
		measure_delayed(most, delayed);
	else
		case_is_absent("delayed-1", "The kernel's membarrier has no delayed calls.");
	puts("ok");
	return 0;
}
