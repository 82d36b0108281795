/* Threads beside the measuring one, each bound to a CPU of its own, so that each of these CPUs runs user code of this process.
 *
 * The measuring thread has the first CPU, and the others have those after it in order. A program gives the body that they run: it calls
 * `take_place` first and ends when `is_over` says so.
 */
#ifndef BESIDE_H
#define BESIDE_H

#include "workload.h"
#include <pthread.h>

#define MOST_CPUS 64

static int cpus[MOST_CPUS], cpu_count;
static pthread_t beside[MOST_CPUS];
static int beside_count;
static uint32_t beside_arrived, beside_over;

/* Learns which CPUs there are, and binds the measuring thread to the first. */
__attribute__((unused)) static void take_first_cpu(void)
{
	cpu_count = allowed_cpus(cpus, MOST_CPUS);
	bind_to(cpus[0]);
}

/* Binds a thread beside to its CPU: `self` counts from 1. */
__attribute__((unused)) static void take_place(void *self)
{
	bind_to(cpus[(long)self]);
	__atomic_add_fetch(&beside_arrived, 1, __ATOMIC_RELEASE);
}

__attribute__((unused)) static inline int is_over(void)
{
	return (int)__atomic_load_n(&beside_over, __ATOMIC_ACQUIRE);
}

/* Starts `count` threads, and returns when each runs on its CPU. They begin on the measuring thread's CPU, which therefore yields. */
__attribute__((unused)) static void start_beside(int count, void *(*body)(void *))
{
	beside_count = count;
	beside_arrived = beside_over = 0;
	for (long self = 1; self <= count; self++)
		check(pthread_create(&beside[self], NULL, body, (void *)self) == 0);
	while (__atomic_load_n(&beside_arrived, __ATOMIC_ACQUIRE) != (uint32_t)count)
		sched_yield();
}

__attribute__((unused)) static void end_beside(void)
{
	__atomic_store_n(&beside_over, 1, __ATOMIC_RELEASE);
	for (int self = 1; self <= beside_count; self++)
		check(pthread_join(beside[self], NULL) == 0);
}

/* A body that only spins in user mode. */
__attribute__((unused)) static void *spin(void *self)
{
	take_place(self);
	while (!is_over())
		relax();
	return NULL;
}

/* `--threads N`, at most one a CPU; 0 if it is not given, which stands for each of the usual counts in turn. */
__attribute__((unused)) static int threads_option(int argc, char **argv)
{
	int threads = (int)number_option(argc, argv, "threads", 1, 0);
	if (threads > cpu_count)
		refuse("--threads %d: there are %d CPUs", threads, cpu_count);
	return threads;
}

#endif
