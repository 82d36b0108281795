/* For programs whose parts each run in a child of their own: what a part gives up, uses up or leaves mapped is the child's alone. */
#pragma once
#include "workload.h"
#include <sys/wait.h>

static void run(void (*part)(void), const char *name)
{
	int status;
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		part();
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child);
	if (status)
		fail("in %s: status %#x", name, (unsigned)status);
}

#define RUN(part) run(part, #part)
