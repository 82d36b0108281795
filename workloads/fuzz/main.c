/* Runs programs of memory calls and prints what each of them observes: the same file on every system.
 *
 *     fuzz --pack FILE [--limit SECONDS]
 *
 * Each program runs in a process of its own, whose window of addresses is free. This process is the conductor: it shares no memory with
 * the program but one page range of control (at an address far from the window), calls round after round, and waits until all
 * steps of a round are done. In a round each actor makes its step as soon as it sees the round's number; so the steps of
 * one round run at the same time, and what one round did is over when the next begins. After the last round the conductor reads the areas of
 * every process that is left, and each of them looks at all pages near boundaries of tables. What does not come back in time is killed.
 */
#include "steps.h"

/* ---- actors ---- */

/* Waits for a round: in user mode, so that its CPU must be interrupted, or asleep. Says whether it is the end instead. */
static int wait_until(uint32_t round)
{
	for (int turns = 0;; turns++) {
		uint32_t now = __atomic_load_n(&CONTROL->round, __ATOMIC_SEQ_CST);
		if (now == LOOK)
			return 1;
		if (now >= round)
			return 0;
		if (program.spins && turns % 64 != 63)
			relax();
		else if (program.spins)
			sched_yield();
		else
			syscall(SYS_futex, &CONTROL->round, FUTEX_WAIT, now, NULL, NULL, 0);
	}
}

/* How many pages are worth a look: a signal for each page of tables that no step names would take most of the time. */
static uint64_t pages_to_look_at(void)
{
	for (int index = 0; index < program.steps; index++) {
		const struct step *step = &program.step[index];
		uint64_t longest = step->length > step->second ? step->length : step->second;
		if (longest > 32 * PAGE || (step->at.slot < 0 && step->at.offset > WINDOW + 2 * BOUNDARY * PAGE) ||
		    (step->to.slot < 0 && step->to.offset > WINDOW + 2 * BOUNDARY * PAGE))
			return SWEPT;
	}
	return 2 * BOUNDARY;
}

/* What the process looks like from within. */
static void look(int actor)
{
	uint64_t swept = pages_to_look_at();
	char *text = CONTROL->sweep[actor];
	size_t room = sizeof CONTROL->sweep[actor];
	for (uint64_t index = 0; index < swept; index++) {
		uint64_t page = index / (2 * BOUNDARY) * TABLE + index % (2 * BOUNDARY);
		unsigned char there = 0;
		long result = call(SYS_mincore, WINDOW + page * PAGE, PAGE, (uint64_t)&there, 0, 0, 0);
		CONTROL->core[actor][index] = result ? '-' : there & 1 ? '1' : '0';
	}
	/* Equal neighbours are told once, with their number. */
	char last[ANSWER] = "", answer[ANSWER] = "";
	uint64_t times = 0;
	for (uint64_t index = 0; index <= swept; index++) {
		uint64_t page = index / (2 * BOUNDARY) * TABLE + index % (2 * BOUNDARY);
		if (index < swept)
			load(WINDOW + page * PAGE, answer, sizeof answer);
		if (index < swept && times && strcmp(last, answer) == 0) {
			times++;
			continue;
		}
		if (times) {
			int length = snprintf(text, room, "%s%s*%lu", index > times ? "," : "", last, times);
			text += length;
			room -= length;
		}
		memcpy(last, answer, sizeof last);
		times = 1;
	}
}

/* Makes the steps of an actor after a round. Never returns. */
static void act_as(int actor, int after)
{
	for (int index = 0; index < program.steps; index++) {
		const struct step *step = &program.step[index];
		if (step->actor != actor || step->round <= after)
			continue;
		if (wait_until(step->round))
			break;
		make(step, CONTROL->answer[index]);
		finish_step();
		if (step->kind == EXIT)
			syscall(CONTROL->process[actor] == actor ? SYS_exit_group : SYS_exit, step->value);
	}
	wait_until(LOOK);
	int is_first = 1;
	for (int other = 0; other < actor; other++)
		is_first &= !(CONTROL->alive[other] && CONTROL->process[other] == CONTROL->process[actor]);
	if (is_first) {
		look(actor);
		finish_step();
	}
	for (;;)
		pause();
}

static void *begin(void *actor)
{
	act_as((long)actor, 0);
	return NULL;
}

static void run(void)
{
	pthread_attr_t small;
	check(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 65536) == 0);
	for (long actor = 1; actor < program.threads; actor++) {
		pthread_t thread;
		check(pthread_create(&thread, &small, begin, (void *)actor) == 0);
	}
	act_as(0, 0);
}

/* ---- the conductor ---- */

static uint64_t limit = 10;

/* How the first process ended, if it should not have; 0 while it lives. */
static int ended;

/* Calls a round and waits until it is done; says whether that came to be. */
static int conduct(uint32_t round, uint32_t steps)
{
	uint64_t deadline = nanoseconds() + limit * 1000000000;
	__atomic_store_n(&CONTROL->done, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&CONTROL->round, round, __ATOMIC_SEQ_CST);
	wake(&CONTROL->round);
	for (;;) {
		uint32_t done = __atomic_load_n(&CONTROL->done, __ATOMIC_SEQ_CST);
		if (done >= steps)
			return 1;
		if (nanoseconds() > deadline || waitpid(CONTROL->pid[0], &ended, WNOHANG) > 0)
			return 0;
		struct timespec moment = { 0, 200000000 };
		syscall(SYS_futex, &CONTROL->done, FUTEX_WAIT, done, &moment, NULL, 0);
	}
}

/* Why a program did not come to its end. */
static void say_lost(void)
{
	if (ended)
		printf("found its first process ended, with wait status %#x\n", ended);
	else
		printf("found it did not come back within %lu s\n", limit);
}

struct area {
	uint64_t first, last, page;
	char rights[5], kind;
};

static void say_area(FILE *to, const struct area *area, const char *joint)
{
	fprintf(to, "%s%lu-%lu:%s%c", joint, area->first, area->last, area->rights, area->kind);
	if (area->kind == 's')
		fprintf(to, "+%lu", area->page);
}

/* The areas in the window; those that differ in nothing are told as one. */
static void say_areas(FILE *to, int pid)
{
	char name[64], line[512];
	snprintf(name, sizeof name, "/proc/%d/maps", pid);
	FILE *maps = fopen(name, "r");
	struct area area = { .kind = 0 };
	const char *joint = "";
	while (maps && fgets(line, sizeof line, maps)) {
		uint64_t start, end, offset;
		char rights[5];
		if (sscanf(line, "%lx-%lx %4s %lx", &start, &end, rights, &offset) != 4 || end <= WINDOW ||
		    start >= WINDOW + WINDOW_PAGES * PAGE)
			continue;
		struct area next = { .kind = rights[3] };
		uint64_t from = start < WINDOW ? WINDOW : start;
		next.first = (from - WINDOW) / PAGE;
		next.last = (end - WINDOW) / PAGE - 1;
		if (next.last >= WINDOW_PAGES)
			next.last = WINDOW_PAGES - 1;
		next.page = rights[3] == 's' ? offset / PAGE + (from - start) / PAGE : 0;
		rights[3] = 0;
		memcpy(next.rights, rights, sizeof next.rights);
		int follows = area.kind && area.last + 1 == next.first && area.kind == next.kind &&
			      strcmp(area.rights, next.rights) == 0 &&
			      (area.kind == 'p' || area.page + next.first - area.first == next.page);
		if (follows) {
			area.last = next.last;
			continue;
		}
		if (area.kind) {
			say_area(to, &area, joint);
			joint = ",";
		}
		area = next;
	}
	if (area.kind)
		say_area(to, &area, joint);
	else
		fprintf(to, "-");
	if (maps)
		fclose(maps);
}

static int speaks(int actor)
{
	int is_first = CONTROL->alive[actor];
	for (int other = 0; other < actor; other++)
		is_first &= !(CONTROL->alive[other] && CONTROL->process[other] == CONTROL->process[actor]);
	return is_first;
}

static void say_end(void)
{
	static char areas[ACTORS][8192];
	int processes = 0;
	for (int actor = 0; actor < ACTORS; actor++) {
		if (!speaks(actor))
			continue;
		/* Before anybody looks: a look makes stacks grow. */
		FILE *text = fmemopen(areas[actor], sizeof areas[actor], "w");
		check(text != NULL);
		say_areas(text, CONTROL->pid[CONTROL->process[actor]]);
		fclose(text);
		processes++;
	}
	if (!conduct(LOOK, processes)) {
		say_lost();
		return;
	}
	for (int actor = 0; actor < ACTORS; actor++)
		if (speaks(actor))
			printf("process %d areas %s core %s sweep %s\n", actor, areas[actor], CONTROL->core[actor],
			       CONTROL->sweep[actor]);
}

static void perform(void)
{
	memset(CONTROL, 0, sizeof *CONTROL);
	ended = 0;
	for (int actor = 0; actor < program.threads; actor++)
		CONTROL->alive[actor] = 1;
	fflush(stdout);
	pid_t pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		CONTROL->pid[0] = getpid();
		run();
	}
	CONTROL->pid[0] = pid;
	int is_back = 1;
	for (int round = 1; round <= program.rounds && is_back; round++) {
		uint32_t steps = 0;
		for (int index = 0; index < program.steps; index++)
			steps += program.step[index].round == round;
		is_back = conduct(round, steps);
	}
	printf("program %s\nanswers", program.name);
	for (int index = 0; index < program.steps; index++)
		printf(" %s", CONTROL->answer[index][0] ? CONTROL->answer[index] : "nothing");
	printf("\n");
	if (is_back)
		say_end();
	else
		say_lost();
	for (int actor = 0; actor < ACTORS; actor++)
		if (CONTROL->pid[actor] > 0 && CONTROL->process[actor] == actor)
			kill(CONTROL->pid[actor], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("end %s\n", program.name);
}

int main(int argc, char **argv)
{
	only_options(argc, argv, (const char *const[]){ "pack", "limit", NULL });
	const char *name = word_option(argc, argv, "pack", "/pack");
	limit = number_option(argc, argv, "limit", 1, 10);
	FILE *pack = fopen(name, "r");
	if (!pack)
		refuse("cannot read %s: %s", name, strerror(errno));
	static char buffer[65536];
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	cpu_count = allowed_cpus(cpus, 64);
	/* One large page would make 512 small ones be in memory at once. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* So that a child whose parent was killed is ours to wait for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	void *control = mmap(CONTROL, sizeof *CONTROL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	check(control == CONTROL);
	struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER };
	check(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
	while (read_program(pack, &program))
		perform();
	fflush(stdout);
	puts("all");
	return 0;
}
