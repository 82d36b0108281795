/* userfaultfd, as Linux answers it: each wrong argument, each way in which a fault is told and resolved, and each event. A part is run by its
 * name with --part. Passes on Linux (as root) as it does here.
 */
#include "errors.h"
#include "modes.h"
#include "guards.h"
#include "shared_guards.h"
#include "events.h"

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "errors", check_errors },
	{ "modes", check_modes },
	{ "guards", check_guards },
	{ "shared-guards", check_shared_guards },
	{ "events", check_events },
};

int main(int argc, char **argv)
{
	static const char *const options[] = { "part", NULL };
	only_options(argc, argv, options);
	const char *wanted = word_option(argc, argv, "part", NULL);
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	check(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
	int runs = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (wanted && strcmp(wanted, parts[i].name) != 0)
			continue;
		parts[i].run();
		printf("part=%s\n", parts[i].name);
		fflush(stdout);
		runs++;
	}
	if (!runs)
		refuse("--part %s: there is no such part", wanted);
	puts("ok");
	return 0;
}
