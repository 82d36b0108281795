/* S2's use of membarrier: Debian's liburcu as it is, 6 readers and 2 writers, with four ways to order the readers.
 *
 *     mb           every reader executes a full barrier, twice a read
 *     signal       no barrier in readers; a writer sends each of them a signal, whose handler has the barrier
 *     membarrier   no barrier in readers; a writer makes one expedited membarrier call for all of them
 *     bulletproof  the same, and readers register themselves when they first read
 *     none         no order at all, and no waiting: only by `--flavour none`, to see that the check below can fail
 *
 * Each flavour runs for a given time, with as many reads and writes as come about in it. An operation is a write: an exchange of the
 * pointer that readers follow, a grace period, and the destruction of the item that the pointer led to before. A reader that finds a
 * destroyed item was not waited for, and the program fails.
 *
 * With `--checked 1` the readers go through liburcu's own consistency checks as well, which cost time (checked.c).
 *
 * Two checks that membarrier was really called, for liburcu falls back to full barriers without a word: the system must offer it
 * (else the case is absent), and every call of the library's to `syscall` passes through this program (the linker's --wrap), which counts.
 *
 * Readers pause after every 64 reads: an emulator that runs all CPUs in one thread would else stay with one reader for a whole tick.
 *
 * Bound: with `mb` nobody need be interrupted: none. With the others it is the number of readers that run at that moment, which is not
 * known: not defined.
 */
#include "../include/measure.h"
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <urcu/flavor.h>
#include "checked.h"

#define MOST_THREADS 64
#define READS_A_PAUSE 64
#define LOOKS 4 /* at an item in one read: time in which it must stay as it is */

extern const struct rcu_flavor_struct urcu_mb_flavor, urcu_memb_flavor, urcu_bp_flavor;
#if __has_include(<urcu/urcu-signal.h>)
extern const struct rcu_flavor_struct urcu_signal_flavor;
#define SIGNAL_FLAVOR &urcu_signal_flavor, &checked_signal
#else
#define SIGNAL_FLAVOR NULL, NULL
#endif

static void do_nothing(void)
{
}

static const struct checked_sections no_sections = {do_nothing, do_nothing};
static const struct rcu_flavor_struct no_flavor = {
	.read_lock = do_nothing,
	.read_unlock = do_nothing,
	.update_synchronize_rcu = do_nothing,
	.register_thread = do_nothing,
	.unregister_thread = do_nothing,
};

static const struct flavour {
	const char *name;
	const struct rcu_flavor_struct *calls;
	const struct checked_sections *checked;
	double bound;
} flavours[] = {
	{"mb", &urcu_mb_flavor, &checked_mb, 0},
	{"signal", SIGNAL_FLAVOR, NO_BOUND},
	{"membarrier", &urcu_memb_flavor, &checked_memb, NO_BOUND},
	{"bulletproof", &urcu_bp_flavor, &checked_bp, NO_BOUND},
	{"none", &no_flavor, &no_sections, NO_BOUND},
};
#define FLAVOURS (sizeof flavours / sizeof *flavours)

/* ---- the calls that are really made ---- */

static uint64_t membarrier_calls;

long __real_syscall(long number, ...);

/* What liburcu calls instead of libc's function: counts, and passes all that may be arguments on. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_membarrier && a == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		__atomic_add_fetch(&membarrier_calls, 1, __ATOMIC_RELAXED);
	return __real_syscall(number, a, b, c, d, e, f);
}

static int uses_membarrier(const struct flavour *flavour)
{
	return flavour->calls == &urcu_memb_flavor || flavour->calls == &urcu_bp_flavor;
}

static int expedited_calls_exist(void)
{
	long known = __real_syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	return known >= 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* ---- readers and writers ---- */

/* Whole while `inverse` is what its name says. */
struct item {
	volatile long value, inverse;
};

static struct rcu_flavor_struct rcu; /* the one that runs */
static struct item items[MOST_THREADS + 1], *current;
static long readers, writers, checked;
static uint32_t ready, begun, over;
static struct {
	uint64_t done;
} __attribute__((aligned(64))) counts[MOST_THREADS]; /* reads and writes, by thread: the readers first */

static void read_once(void)
{
	rcu.read_lock();
	struct item *item = __atomic_load_n(&current, __ATOMIC_CONSUME);
	for (int look = 0; look < LOOKS; look++) {
		long value = item->value;
		if (item->inverse != ~value)
			fail("a reader follows the pointer to an item that was destroyed: its grace period ended too early");
	}
	rcu.read_unlock();
}

/* A grace period without registered readers needs no barrier: nobody writes before all of them are there. */
static void wait_for_all(void)
{
	__atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		relax();
}

static void *be_reader(void *self)
{
	rcu.register_thread();
	wait_for_all();
	for (uint64_t done = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED);) {
		for (int i = 0; i < READS_A_PAUSE; i++)
			read_once();
		done += READS_A_PAUSE;
		__atomic_store_n(&counts[(long)self].done, done, __ATOMIC_RELAXED);
		relax();
	}
	rcu.unregister_thread();
	return NULL;
}

static void *be_writer(void *self)
{
	struct item *mine = &items[1 + (long)self - readers];
	wait_for_all();
	for (long done = 1; !__atomic_load_n(&over, __ATOMIC_RELAXED); done++) {
		mine->value = done;
		mine->inverse = ~done;
		struct item *old = __atomic_exchange_n(&current, mine, __ATOMIC_ACQ_REL);
		rcu.update_synchronize_rcu();
		old->value = old->inverse = 0;
		mine = old;
		__atomic_store_n(&counts[(long)self].done, (uint64_t)done, __ATOMIC_RELAXED);
	}
	return NULL;
}

static uint64_t sum(long from, long to)
{
	uint64_t total = 0;
	for (long i = from; i < to; i++)
		total += __atomic_load_n(&counts[i].done, __ATOMIC_RELAXED);
	return total;
}

static void measure(const struct flavour *flavour, long milliseconds)
{
	pthread_t threads[MOST_THREADS];
	rcu = *flavour->calls;
	if (checked) {
		rcu.read_lock = flavour->checked->read_lock;
		rcu.read_unlock = flavour->checked->read_unlock;
	}
	ready = begun = over = 0;
	memset(counts, 0, sizeof counts);
	items[0] = (struct item){1, ~1L};
	current = &items[0];
	for (long i = 0; i < readers + writers; i++)
		check(pthread_create(&threads[i], NULL, i < readers ? be_reader : be_writer, (void *)i) == 0);
	while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) != (uint32_t)(readers + writers))
		usleep(100);
	uint64_t calls_before = membarrier_calls;
	struct measurement run = begin("CAL:");
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
	do /* once more while not one write has ended */
		usleep((useconds_t)milliseconds * 1000);
	while (sum(readers, readers + writers) == 0);
	uint64_t reads = sum(0, readers), writes = sum(readers, readers + writers);
	end(&run);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (long i = 0; i < readers + writers; i++)
		check(pthread_join(threads[i], NULL) == 0);

	uint64_t calls = membarrier_calls - calls_before;
	/* One grace period serves at most every writer once, and needs a call at least, unless there is nobody to wait for. */
	if (readers > 0 && uses_membarrier(flavour) && calls * (uint64_t)writers < writes)
		fail("%llu writes made only %llu membarrier calls: liburcu fell back to something else",
		     (unsigned long long)writes, (unsigned long long)calls);
	char figures[160];
	double seconds = (double)run.time / 1e9;
	snprintf(figures, sizeof figures, " reads_per_s=%.0f writes_per_s=%.1f membarrier_calls=%llu", (double)reads / seconds,
		 (double)writes / seconds, (unsigned long long)calls);
	print_measurement(&run, flavour->name, readers + writers, (long)writes, flavour->bound, figures);
}

static void measure_or_say_why_not(const struct flavour *flavour, long milliseconds)
{
	if (!flavour->calls)
		case_is_absent(flavour->name, "This liburcu has no such flavour any more.");
	else if (uses_membarrier(flavour) && !expedited_calls_exist())
		case_is_absent(flavour->name, "The kernel has no expedited membarrier calls; liburcu would fall back to full barriers.");
	else
		measure(flavour, milliseconds);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"milliseconds", "readers", "writers", "flavour", "checked", NULL};
	only_options(argc, argv, options);
	long milliseconds = number_option(argc, argv, "milliseconds", 1, 500);
	readers = number_option(argc, argv, "readers", 0, 6);
	writers = number_option(argc, argv, "writers", 1, 2);
	if (milliseconds > 60000)
		refuse("--milliseconds %ld: at most a minute", milliseconds);
	if (readers > MOST_THREADS || writers > MOST_THREADS || readers + writers > MOST_THREADS)
		refuse("%ld readers and %ld writers: at most %d threads", readers, writers, MOST_THREADS);
	checked = number_option(argc, argv, "checked", 0, 0);
	const char *wanted = word_option(argc, argv, "flavour", "all");
	int known = 0;
	for (size_t i = 0; i < FLAVOURS; i++) {
		int all = strcmp(wanted, "all") == 0 && flavours[i].calls != &no_flavor;
		if (!all && strcmp(wanted, flavours[i].name) != 0)
			continue;
		known = 1;
		measure_or_say_why_not(&flavours[i], milliseconds);
	}
	if (!known)
		refuse("--flavour %s: one of all, mb, signal, membarrier, bulletproof, none", wanted);
	puts("ok");
	return 0;
}
