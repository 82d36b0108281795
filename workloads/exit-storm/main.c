/* Threads ending, one by one, all at once, and with their whole process.
 *
 *     single-N    beside N - 1 spinning threads one thread is started, uses its stack, ends and is joined; again and again
 *     storm-N     N - 1 threads, each on a CPU of its own, end at the same moment, and are joined
 *     process-N   a process whose N threads spin, each on a CPU of its own, ends by exit_group
 *
 * An operation is the end of one thread, in `process` of one process. N is 2, 4 and 8, as far as there are CPUs.
 *
 * Bound: what goes away with a thread (its stack's pages) only it has used, and with a process nobody else is left to use anything:
 * none. In `storm` and `process` threads end at the same time; who is interrupted there is who happens to run still.
 */
#include "../include/beside.h"
#include "../include/measure.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define STACK_PAGES 16

/* Uses its stack as deep as STACK_PAGES, so that there is something to take away. */
static void use_stack(void)
{
	volatile char memory[STACK_PAGES * PAGE];
	for (size_t at = 0; at < sizeof memory; at += PAGE)
		memory[at] = 1;
	for (size_t at = 0; at < sizeof memory; at += PAGE)
		check(memory[at] == 1);
}

static void *use_and_end(void *self)
{
	use_stack();
	return self;
}

static void *use_and_wait(void *self)
{
	use_stack();
	take_place(self);
	while (!is_over())
		relax();
	return NULL;
}

static void measure_single(int threads, long ends)
{
	start_beside(threads - 1, spin);
	pthread_t thread;
	struct measurement loop = begin("TLB:");
	for (long i = 0; i < ends; i++) {
		void *result;
		check(pthread_create(&thread, NULL, use_and_end, &loop) == 0);
		check(pthread_join(thread, &result) == 0 && result == &loop);
	}
	end(&loop);
	end_beside();
	char name[32];
	snprintf(name, sizeof name, "single-%d", threads);
	print_measurement(&loop, name, threads, ends, 0, "");
}

/* Counts from the word to end until all have ended. */
static void measure_storm(int threads, long rounds)
{
	struct measurement loop = {.row = "TLB:"};
	for (long i = 0; i < rounds; i++) {
		start_beside(threads - 1, use_and_wait);
		resume_both(&loop);
		end_beside();
		pause_both(&loop);
	}
	char name[32];
	snprintf(name, sizeof name, "storm-%d", threads);
	print_measurement(&loop, name, threads, rounds * (threads - 1), 0, "");
}

/* Counts from just before exit_group, at which the process that ends takes note, until it is waited for. */
static void measure_process(int threads, long rounds)
{
	struct measurement *loop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(loop != MAP_FAILED);
	loop->row = "TLB:";
	for (long i = 0; i < rounds; i++) {
		pid_t process = fork();
		check(process >= 0);
		if (process == 0) {
			start_beside(threads - 1, use_and_wait);
			(void)interrupt_row(loop->row); /* the copies of pages that reading it needs are made here */
			resume_both(loop);
			_exit(7);
		}
		int status;
		check(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 7);
		pause_both(loop);
	}
	char name[32];
	snprintf(name, sizeof name, "process-%d", threads);
	print_measurement(loop, name, threads, rounds, 0, "");
	check(munmap(loop, PAGE) == 0);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"ends", "storms", "processes", "threads", NULL};
	only_options(argc, argv, options);
	long ends = number_option(argc, argv, "ends", 1, 500), storms = number_option(argc, argv, "storms", 1, 50),
	     processes = number_option(argc, argv, "processes", 1, 30);
	take_first_cpu();
	int wanted = threads_option(argc, argv);
	if (cpu_count < 2 || wanted == 1)
		refuse("threads must end beside others: two CPUs and two threads at least");
	for (int threads = 2; threads <= cpu_count && threads <= 8; threads *= 2) {
		if (wanted && wanted != threads)
			continue;
		measure_single(threads, ends);
		measure_storm(threads, storms);
		measure_process(threads, processes);
	}
	puts("ok");
	return 0;
}
