/* Sequences, and areas, that make no sense: whoever is struck in one ends by SIGSEGV. For main.c, whose handler and children these use. */
#ifndef SEQUENCES_BROKEN_H
#define SEQUENCES_BROKEN_H

static struct sequence broken_sequence;
static uint32_t broken_flags;

static void be_struck(void)
{
	struct itimerval soon = {{0, 1000}, {0, 1000}};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	enter();
	check(sigaction(SIGALRM, &action, NULL) == 0);
	area.flags = broken_flags;
	check(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	asm volatile(
		"movq %[place], %[sequence]\n"
		".globl broken_start, broken_end, broken_abort\n"
		"broken_start: movl $1000, %%eax\n"
		"1: decl %%eax\n"
		"jnz 1b\n"
		"pause\n"
		"jmp broken_start\n"
		"broken_end:\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"broken_abort:\n"
		: [sequence] "=m"(area.sequence)
		: [place] "r"(&broken_sequence), [signature] "i"(SIGNATURE)
		: "rax", "memory", "cc");
	exit(7);
}

extern char broken_start[], broken_end[], broken_abort[];

static void ends_by(int signal, const char *what)
{
	int status = ending_of(be_struck);
	if (signal ? !WIFSIGNALED(status) || WTERMSIG(status) != signal : !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		fail("%s ended with status %#x", what, status);
}

static void broken(void)
{
	uint64_t start = (uint64_t)broken_start, abort = (uint64_t)broken_abort;
	const struct sequence sound = {0, 0, start, (uint64_t)broken_end - start, abort};
	broken_sequence = sound;
	ends_by(0, "a sound sequence");
	broken_sequence.version = 1;
	ends_by(SIGSEGV, "a sequence of another version");
	broken_sequence = sound, broken_sequence.flags = 1;
	ends_by(SIGSEGV, "a sequence with flags");
	broken_sequence = sound, broken_sequence.abort = start + 1;
	ends_by(SIGSEGV, "a sequence that aborts into itself");
	broken_sequence = sound, broken_sequence.abort = abort + 1;
	ends_by(SIGSEGV, "an abort handler without a signature");
	broken_sequence = sound, broken_sequence.abort = 0xffff800000000000;
	ends_by(SIGSEGV, "an abort handler in the kernel");
	broken_sequence = sound, broken_sequence.abort = 2;
	ends_by(SIGSEGV, "an abort handler whose signature lies before all memory");
	broken_sequence = sound, broken_sequence.length = -start;
	ends_by(SIGSEGV, "a sequence that runs around the end of memory");
	broken_sequence = sound, broken_flags = 1;
	ends_by(SIGSEGV, "flags in the area");
	broken_flags = 0;
}

static void no_descriptor(void)
{
	enter();
	area.sequence = 8;
	raise(SIGALRM);
	exit(7);
}

static void area_goes(void)
{
	struct area *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(mapped != MAP_FAILED);
	take_back_the_library_s();
	check(rseq(mapped, sizeof *mapped, 0, SIGNATURE) == 0);
	munmap(mapped, 4096);
	for (;;)
		raise(SIGALRM);
}

static void unreadable(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	check(sigaction(SIGALRM, &action, NULL) == 0);
	int status = ending_of(no_descriptor);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = ending_of(area_goes);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

#endif
