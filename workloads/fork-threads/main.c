/* Threads that fork while the others go on changing memory.
 *
 * Each thread owns a page and knows what it holds. It forks again and again; a child must see the page as it was at the fork
 * (copy-on-write, with the other threads still writing theirs), changes its own copy, and either ends by itself or executes this
 * program again. The parent's page must stay as it was. A last part forks with many threads blocked and with signals arriving.
 */
#include "../include/workload.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define THREADS 6
#define WORDS (PAGE / sizeof(long))

static volatile long *pages[THREADS];
static volatile int stop;
static char **environment;
static const char *self_path;

/* Changes a page all the time, always keeping its words equal in pairs at rest; runs beside the forks. */
static void *keep_writing(void *unused)
{
	(void)unused;
	volatile long *page = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page != MAP_FAILED);
	for (long value = 1; !stop; value++) {
		for (size_t i = 0; i < 16 * WORDS; i += 64)
			page[i] = value;
		for (size_t i = 0; i < 16 * WORDS; i += 64)
			if (page[i] != value)
				fail("a page of the writing thread holds %ld instead of %ld", page[i], value);
		relax();
	}
	return NULL;
}

/* In the child: only async-signal-safe calls, the other threads are gone. */
static void child(int number, long value, int execute)
{
	volatile long *page = pages[number];
	for (size_t i = 0; i < WORDS; i++)
		if (page[i] != value)
			_exit(10);
	for (size_t i = 0; i < WORDS; i++)
		page[i] = -value;
	for (size_t i = 0; i < WORDS; i++)
		if (page[i] != -value)
			_exit(11);
	if (execute) {
		char *const arguments[] = {(char *)self_path, "--child", "42", NULL};
		execve(self_path, arguments, environment);
		_exit(12);
	}
	_exit(42);
}

static void *fork_often(void *argument)
{
	int number = (int)(long)argument;
	volatile long *page = pages[number];
	for (long round = 1; round <= 12; round++) {
		long value = number * 1000 + round;
		for (size_t i = 0; i < WORDS; i++)
			page[i] = value;
		pid_t pid = fork();
		if (pid == 0)
			child(number, value, round % 4 == 0);
		check(pid > 0);
		/* These stores race with nothing in this process, but the child must never see them. */
		for (size_t i = 0; i < WORDS; i++)
			page[i] = value + 500000;
		int status;
		check(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
			fail("child of thread %d, round %ld: status %x", number, round, status);
		for (size_t i = 0; i < WORDS; i++)
			if (page[i] != value + 500000)
				fail("thread %d sees its child's store", number);
	}
	return NULL;
}

/* Children that start threads of their own, which fork again. */
static void *grandchild(void *unused)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	int status;
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return unused;
}

static void threads_in_children(void)
{
	for (int round = 0; round < 4; round++) {
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			pthread_t threads[3];
			for (int i = 0; i < 3; i++)
				check(pthread_create(&threads[i], NULL, grandchild, NULL) == 0);
			for (int i = 0; i < 3; i++)
				check(pthread_join(threads[i], NULL) == 0);
			/* Ends the process from the first thread while another one still runs. */
			pthread_t lasting;
			check(pthread_create(&lasting, NULL, keep_writing, NULL) == 0);
			exit(9);
		}
		int status;
		check(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
			fail("a child with threads ended with status %x", status);
	}
}

/* exec from a thread that is not the first: all others must be gone, the process id stays. */
static void *execute_from_thread(void *path)
{
	char *const arguments[] = {path, "--child", "43", NULL};
	execve(path, arguments, environment);
	_exit(12);
}

static void exec_with_threads(void)
{
	for (int round = 0; round < 4; round++) {
		pid_t pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			pthread_t thread;
			for (int i = 0; i < 3; i++)
				check(pthread_create(&thread, NULL, keep_writing, NULL) == 0);
			check(pthread_create(&thread, NULL, execute_from_thread, (void *)self_path) == 0);
			for (;;)
				pause();
		}
		int status;
		check(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 43)
			fail("exec from a thread: status %x", status);
	}
}

int main(int argc, char **argv, char **envp)
{
	static const char *const options[] = {"child", NULL};
	only_options(argc, argv, options);
	long code = number_option(argc, argv, "child", 0, -1);
	if (code >= 0)
		return (int)code;
	environment = envp;
	self_path = argv[0];
	if (access(self_path, X_OK) != 0)
		self_path = "/proc/self/exe";

	pthread_t writers[2], forkers[THREADS];
	for (int i = 0; i < 2; i++)
		check(pthread_create(&writers[i], NULL, keep_writing, NULL) == 0);
	for (long i = 0; i < THREADS; i++) {
		pages[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		check(pages[i] != MAP_FAILED);
		check(pthread_create(&forkers[i], NULL, fork_often, (void *)i) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		check(pthread_join(forkers[i], NULL) == 0);
	stop = 1;
	for (int i = 0; i < 2; i++)
		check(pthread_join(writers[i], NULL) == 0);
	stop = 0;
	threads_in_children();
	exec_with_threads();
	check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	puts("ok");
	return 0;
}
