/* The thread check shared by threads-glibc and threads-musl: every primitive of pthreads that rests on the kernel's futexes,
 * thread-local storage, clone and exit, each with a condition that only holds if it works.
 *
 * Each part runs `THREADS` threads, more than there are CPUs in most runs, so that sleeping and waking happen for real.
 */
#include "workload.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define THREADS 8

static pthread_t threads[THREADS];

static void start_all(void *(*body)(void *))
{
	for (long i = 0; i < THREADS; i++) {
		int error = pthread_create(&threads[i], NULL, body, (void *)i);
		if (error)
			fail("pthread_create %ld: %s", i, strerror(error));
	}
}

/* Joins all; each must give back the number that it was started with. */
static void join_all(void)
{
	for (long i = 0; i < THREADS; i++) {
		void *result = NULL;
		int error = pthread_join(threads[i], &result);
		if (error)
			fail("pthread_join %ld: %s", i, strerror(error));
		if (result != (void *)i)
			fail("thread %ld gave back %ld", i, (long)result);
	}
}

/* ---- mutexes: an unprotected counter that only the mutex keeps right ---- */

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;

static void *count_under_mutex(void *number)
{
	for (int i = 0; i < 5000; i++) {
		check(pthread_mutex_lock(&counter_lock) == 0);
		counter = counter + 1;
		check(pthread_mutex_unlock(&counter_lock) == 0);
	}
	return number;
}

static void mutexes(void)
{
	counter = 0;
	start_all(count_under_mutex);
	join_all();
	if (counter != 5000L * THREADS)
		fail("mutex: the counter is %ld, not %ld", counter, 5000L * THREADS);

	pthread_mutexattr_t attributes;
	pthread_mutex_t lock;
	check(pthread_mutexattr_init(&attributes) == 0);
	check(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
	check(pthread_mutex_init(&lock, &attributes) == 0);
	check(pthread_mutex_lock(&lock) == 0 && pthread_mutex_lock(&lock) == 0);
	check(pthread_mutex_unlock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
	check(pthread_mutex_trylock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
}

/* ---- a robust mutex whose owner ends: the kernel must mark it and wake the waiter ---- */

static pthread_mutex_t robust_lock;
static volatile int robust_held;

static void *die_with_lock(void *number)
{
	check(pthread_mutex_lock(&robust_lock) == 0);
	__atomic_store_n(&robust_held, 1, __ATOMIC_SEQ_CST);
	usleep(2000);
	return number;
}

static void robust_mutexes(void)
{
	pthread_mutexattr_t attributes;
	check(pthread_mutexattr_init(&attributes) == 0);
	check(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	check(pthread_mutex_init(&robust_lock, &attributes) == 0);
	for (int round = 0; round < 5; round++) {
		pthread_t owner;
		robust_held = 0;
		check(pthread_create(&owner, NULL, die_with_lock, NULL) == 0);
		while (!__atomic_load_n(&robust_held, __ATOMIC_SEQ_CST))
			usleep(100);
		int result = pthread_mutex_lock(&robust_lock);
		if (result != EOWNERDEAD)
			fail("robust mutex: lock gave %d instead of EOWNERDEAD", result);
		check(pthread_mutex_consistent(&robust_lock) == 0);
		check(pthread_mutex_unlock(&robust_lock) == 0);
		check(pthread_join(owner, NULL) == 0);
	}
}

/* ---- condition variables: a bounded queue, and a broadcast that must reach everybody ---- */

#define QUEUE 4
#define ITEMS 2000

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static long queue[QUEUE], queue_length, taken_sum, taken_count;

static void *produce_or_consume(void *number)
{
	long self = (long)number;
	for (long i = 0; i < ITEMS; i++) {
		check(pthread_mutex_lock(&queue_lock) == 0);
		if (self % 2 == 0) {
			while (queue_length == QUEUE)
				check(pthread_cond_wait(&not_full, &queue_lock) == 0);
			queue[queue_length++] = self * ITEMS + i;
			check(pthread_cond_signal(&not_empty) == 0);
		} else {
			while (queue_length == 0)
				check(pthread_cond_wait(&not_empty, &queue_lock) == 0);
			taken_sum += queue[--queue_length];
			taken_count++;
			check(pthread_cond_signal(&not_full) == 0);
		}
		check(pthread_mutex_unlock(&queue_lock) == 0);
	}
	return number;
}

static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static long waiting_at_gate;
static int gate_open;

static void *wait_at_gate(void *number)
{
	check(pthread_mutex_lock(&queue_lock) == 0);
	waiting_at_gate++;
	while (!gate_open)
		check(pthread_cond_wait(&gate, &queue_lock) == 0);
	check(pthread_mutex_unlock(&queue_lock) == 0);
	return number;
}

static void condition_variables(void)
{
	start_all(produce_or_consume);
	join_all();
	long expected = 0;
	for (long self = 0; self < THREADS; self += 2)
		for (long i = 0; i < ITEMS; i++)
			expected += self * ITEMS + i;
	if (taken_sum != expected || taken_count != ITEMS * THREADS / 2 || queue_length != 0)
		fail("queue: sum %ld (expected %ld), %ld taken, %ld left", taken_sum, expected, taken_count, queue_length);

	start_all(wait_at_gate);
	for (long seen = 0; seen < THREADS;) {
		usleep(500);
		check(pthread_mutex_lock(&queue_lock) == 0);
		seen = waiting_at_gate;
		if (seen == THREADS) {
			gate_open = 1;
			check(pthread_cond_broadcast(&gate) == 0);
		}
		check(pthread_mutex_unlock(&queue_lock) == 0);
	}
	join_all();
}

/* ---- waits with a time limit: they must end, with ETIMEDOUT, and not before their time ---- */

static void timed_waits(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec limit;
	uint64_t start = nanoseconds();
	check(clock_gettime(CLOCK_REALTIME, &limit) == 0);
	limit.tv_nsec += 20000000;
	if (limit.tv_nsec >= 1000000000) {
		limit.tv_nsec -= 1000000000;
		limit.tv_sec++;
	}
	check(pthread_mutex_lock(&lock) == 0);
	int result = pthread_cond_timedwait(&never, &lock, &limit);
	if (result != ETIMEDOUT)
		fail("pthread_cond_timedwait gave %d instead of ETIMEDOUT", result);
	check(pthread_mutex_unlock(&lock) == 0);
	if (nanoseconds() - start < 19000000)
		fail("a wait of 20 ms ended after %llu ns", (unsigned long long)(nanoseconds() - start));

	sem_t semaphore;
	check(sem_init(&semaphore, 0, 0) == 0);
	check(sem_timedwait(&semaphore, &limit) == -1 && errno == ETIMEDOUT);
	check(sem_post(&semaphore) == 0 && sem_wait(&semaphore) == 0);
	check(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
}

/* ---- barriers: in each round exactly one thread is told that it was the last, and nobody runs ahead ---- */

static pthread_barrier_t barrier;
static long rounds_done[THREADS], serial_threads;

static void *meet(void *number)
{
	long self = (long)number;
	for (long round = 1; round <= 200; round++) {
		__atomic_store_n(&rounds_done[self], round, __ATOMIC_SEQ_CST);
		int result = pthread_barrier_wait(&barrier);
		if (result == PTHREAD_BARRIER_SERIAL_THREAD)
			__atomic_fetch_add(&serial_threads, 1, __ATOMIC_SEQ_CST);
		else
			check(result == 0);
		for (int other = 0; other < THREADS; other++) {
			long seen = __atomic_load_n(&rounds_done[other], __ATOMIC_SEQ_CST);
			if (seen < round || seen > round + 1)
				fail("barrier: thread %d is in round %ld while %ld is in %ld", other, seen, self, round);
		}
	}
	return number;
}

static void barriers(void)
{
	check(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
	start_all(meet);
	join_all();
	if (serial_threads != 200)
		fail("barrier: %ld serial threads in 200 rounds", serial_threads);
	check(pthread_barrier_destroy(&barrier) == 0);
}

/* ---- thread-local storage: initial values, separate copies, alignment, destructors of keys ---- */

static __thread long local_value = 77;
static __thread char local_zero[5000];
static __thread struct {
	char bytes[64];
} local_aligned __attribute__((aligned(64)));
static pthread_key_t key;
static long destroyed;

static void destroy(void *value)
{
	__atomic_fetch_add(&destroyed, (long)value, __ATOMIC_SEQ_CST);
}

static void *use_local_storage(void *number)
{
	long self = (long)number;
	if (local_value != 77)
		fail("thread-local storage: the initial value is %ld", local_value);
	for (size_t i = 0; i < sizeof local_zero; i++)
		check(local_zero[i] == 0);
	check(((uintptr_t)&local_aligned & 63) == 0);
	local_value = self;
	memset(local_zero, (int)self + 1, sizeof local_zero);
	check(pthread_setspecific(key, (void *)(self + 1)) == 0);
	for (int i = 0; i < 50; i++) {
		sched_yield();
		check(local_value == self && local_zero[i] == self + 1 && local_zero[sizeof local_zero - 1] == self + 1);
		check(pthread_getspecific(key) == (void *)(self + 1));
	}
	return number;
}

static void local_storage(void)
{
	check(pthread_key_create(&key, destroy) == 0);
	for (int round = 0; round < 5; round++) {
		start_all(use_local_storage);
		join_all();
	}
	if (destroyed != 5L * THREADS * (THREADS + 1) / 2)
		fail("destructors of a key: sum %ld", destroyed);
	if (local_value != 77)
		fail("the first thread's own variable changed to %ld", local_value);
}

/* ---- readers and writers, once, spin locks ---- */

static pthread_rwlock_t pair_lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long pair[2];

static void *read_or_write_pair(void *number)
{
	long self = (long)number;
	for (long i = 0; i < 2000; i++) {
		if (self < 2) {
			check(pthread_rwlock_wrlock(&pair_lock) == 0);
			pair[0] = pair[0] + 1;
			if (i % 100 == 0)
				sched_yield();
			pair[1] = pair[1] + 1;
		} else {
			check(pthread_rwlock_rdlock(&pair_lock) == 0);
			if (pair[0] != pair[1])
				fail("rwlock: a reader sees %ld and %ld", pair[0], pair[1]);
		}
		check(pthread_rwlock_unlock(&pair_lock) == 0);
	}
	return number;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static long once_ran, once_ready;

static void initialise(void)
{
	usleep(3000);
	once_ran++;
	once_ready = 1;
}

static void *need_once(void *number)
{
	check(pthread_once(&once, initialise) == 0);
	if (!once_ready)
		fail("once: came back before the initialiser had ended");
	return number;
}

static void locks_of_other_kinds(void)
{
	start_all(read_or_write_pair);
	join_all();
	check(pair[0] == 4000 && pair[1] == 4000);
	start_all(need_once);
	join_all();
	if (once_ran != 1)
		fail("once: ran %ld times", once_ran);
}

/* ---- cancellation: a signal between threads of one process, inside a blocking call and outside ---- */

static long cleaned;

static void clean(void *number)
{
	__atomic_fetch_add(&cleaned, (long)number, __ATOMIC_SEQ_CST);
}

static void *wait_to_be_cancelled(void *number)
{
	pthread_cleanup_push(clean, (void *)((long)number + 1));
	if ((long)number % 2) {
		int before;
		check(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before) == 0);
		for (;;)
			relax();
	}
	for (;;)
		sleep(1000);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancellation(void)
{
	start_all(wait_to_be_cancelled);
	usleep(20000);
	for (int i = 0; i < THREADS; i++)
		check(pthread_cancel(threads[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		check(pthread_join(threads[i], &result) == 0);
		if (result != PTHREAD_CANCELED)
			fail("thread %d was not cancelled", i);
	}
	check(cleaned == (long)THREADS * (THREADS + 1) / 2);
}

/* ---- many short-lived threads, some detached: stacks come and go, exit clears the thread's word ---- */

static long lived;

static void *live_briefly(void *number)
{
	volatile char stack[20000];
	for (size_t i = 0; i < sizeof stack; i += 512)
		stack[i] = (char)i;
	__atomic_fetch_add(&lived, 1, __ATOMIC_SEQ_CST);
	return number;
}

static void short_lives(void)
{
	for (int round = 0; round < 20; round++) {
		start_all(live_briefly);
		join_all();
	}
	check(lived == 20L * THREADS);
	pthread_attr_t detached;
	check(pthread_attr_init(&detached) == 0);
	check(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
	for (int i = 0; i < 40; i++) {
		pthread_t thread;
		check(pthread_create(&thread, &detached, live_briefly, NULL) == 0);
	}
	for (int i = 0; __atomic_load_n(&lived, __ATOMIC_SEQ_CST) != 20L * THREADS + 40; i++) {
		if (i == 10000)
			fail("detached threads: only %ld ran", lived - 20L * THREADS);
		usleep(1000);
	}
}

/* ---- the state of the vector unit belongs to each thread ---- */

/* Registers hold their values over a call that gives the CPU away, and over preemption. */
static void *keep_vectors(void *number)
{
	double self = (double)(long)number + 0.25, kept[4];
	for (int round = 0; round < 200; round++) {
		long result = SYS_sched_yield;
		__asm__ volatile("movsd %[self], %%xmm8; movsd %[self], %%xmm15; addsd %%xmm15, %%xmm15\n\t"
				 "syscall\n\t"
				 "movsd %%xmm8, %[first]; movsd %%xmm15, %[second]"
				 : "+a"(result), [first] "=m"(kept[0]), [second] "=m"(kept[1])
				 : [self] "m"(self)
				 : "rcx", "r11", "xmm8", "xmm15", "memory");
		if (result != 0 || kept[0] != self || kept[1] != self + self)
			fail("vector registers of thread %ld changed over a system call", (long)number);
		double value = self;
		uint64_t turns = 2000;
		__asm__ volatile("movsd %[value], %%xmm9\n\t"
				 "1: pause; dec %[turns]; jnz 1b\n\t"
				 "movsd %%xmm9, %[kept]"
				 : [turns] "+r"(turns), [kept] "=m"(kept[2])
				 : [value] "m"(value)
				 : "xmm9", "cc", "memory");
		if (kept[2] != self)
			fail("vector registers of thread %ld changed while it ran", (long)number);
	}
	return number;
}

int main(void)
{
	mutexes();
	robust_mutexes();
	condition_variables();
	timed_waits();
	barriers();
	local_storage();
	locks_of_other_kinds();
	cancellation();
	short_lives();
	start_all(keep_vectors);
	join_all();
	puts("ok");
	return 0;
}
