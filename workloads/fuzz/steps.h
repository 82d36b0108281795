/* What actors do: accesses that may end in a signal, and system calls, each with its answer in words.
 *
 * What kernels may choose is not said: a mapping that the kernel placed goes into a slot, and steps name it by that.
 */
#ifndef STEPS_H
#define STEPS_H

#include "form.h"

#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CONTROL ((struct control *)0x300000000000UL)
/* Pages that are looked at in the end, at most: those around each boundary of tables. */
#define SWEPT (WINDOW_PAGES / TABLE * 2 * BOUNDARY)
#define ANSWER 80

struct control {
	/* The round that may begin; all ones: look around and end. */
	uint32_t round, done;
	int pid[ACTORS];
	/* Whether the actor is the first of its process that is left: it speaks for it. */
	int alive[ACTORS], process[ACTORS];
	uint64_t block[SLOTS];
	char answer[MOST_STEPS][ANSWER];
	char core[ACTORS][SWEPT + 1];
	char sweep[ACTORS][SWEPT * 24];
};

#define LOOK 0x7fffffffU

static struct program program;
static int cpus[64], cpu_count;

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 64, NULL, NULL, 0);
}

/* ---- accesses that may end in a signal ---- */

static __thread sigjmp_buf before;
static __thread volatile uint64_t expected;
static __thread volatile int signal_number, signal_code, is_elsewhere;

static void caught(int number, siginfo_t *information, void *context)
{
	(void)context;
	signal_number = number;
	signal_code = information->si_code;
	is_elsewhere = (uint64_t)information->si_addr != expected;
	siglongjmp(before, 1);
}

static void say_signal(char *answer, size_t room)
{
	if (is_elsewhere)
		snprintf(answer, room, "signal-%d-at-another-address", signal_number);
	else if (signal_number == SIGSEGV && signal_code == SEGV_MAPERR)
		snprintf(answer, room, "maperr");
	else if (signal_number == SIGSEGV && signal_code == SEGV_ACCERR)
		snprintf(answer, room, "accerr");
	else if (signal_number == SIGBUS && signal_code == BUS_ADRERR)
		snprintf(answer, room, "bus");
	else
		snprintf(answer, room, "signal-%d-code-%d", signal_number, signal_code);
}

static void load(uint64_t address, char *answer, size_t room)
{
	expected = address;
	if (sigsetjmp(before, 0) == 0)
		snprintf(answer, room, "=%lu", *(volatile uint64_t *)address);
	else
		say_signal(answer, room);
}

static void store(uint64_t address, uint64_t value, char *answer, size_t room)
{
	expected = address;
	if (sigsetjmp(before, 0) == 0) {
		*(volatile uint64_t *)address = value;
		snprintf(answer, room, "ok");
	} else {
		say_signal(answer, room);
	}
}

/* ---- steps ---- */

static uint64_t place(struct address address)
{
	if (address.slot < 0)
		return address.offset;
	uint64_t block = CONTROL->block[address.slot];
	return (block ? block : NOWHERE) + address.offset;
}

/* The system call itself: the library would check arguments, or keep some. */
static long call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	long result;
	register uint64_t fourth __asm__("r10") = d;
	register uint64_t fifth __asm__("r8") = e;
	register uint64_t sixth __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}

/* Says where a mapping is, without saying what kernels may choose. */
static void say_place(long result, uint64_t at, const char *same, uint64_t to, int slot, char *answer)
{
	uint64_t address = result;
	if (result < 0 && result >= -4095) {
		snprintf(answer, ANSWER, "%ld", result);
	} else if (address >= WINDOW && address < WINDOW + WINDOW_PAGES * PAGE) {
		snprintf(answer, ANSWER, "@%lu", (address - WINDOW) / PAGE);
	} else if (address == at) {
		snprintf(answer, ANSWER, "%s", same);
	} else if (address == to) {
		snprintf(answer, ANSWER, "there");
	} else {
		CONTROL->block[slot] = address;
		snprintf(answer, ANSWER, "$");
	}
}

static void say_result(long result, char *answer)
{
	if (result < 0)
		snprintf(answer, ANSWER, "%ld", result);
	else if (result == 0)
		snprintf(answer, ANSWER, "ok");
	else
		snprintf(answer, ANSWER, "returned-%ld", result);
}

static void incore(const struct step *step, char *answer)
{
	unsigned char pages[ANSWER] = { 0 };
	uint64_t count = (step->length + PAGE - 1) / PAGE;
	int is_shown = count < ANSWER - 2;
	static unsigned char many[4096];
	if (!is_shown && count > sizeof many && place(step->at) % PAGE == 0 &&
	    place(step->at) + step->length <= 0x7ffffffff000UL && place(step->at) + step->length >= step->length) {
		/* More than there is room for: only whether the first pages are mapped. */
		count = sizeof many;
	}
	long result = call(SYS_mincore, place(step->at), step->length, (uint64_t)(is_shown ? pages : many), 0, 0, 0);
	if (result != 0)
		return say_result(result, answer);
	answer[0] = '%';
	for (uint64_t page = 0; page < count && page < ANSWER - 2; page++)
		answer[1 + page] = (is_shown ? pages : many)[page] & 1 ? '1' : '0';
}

static void act_as(int actor, int after);

static void fork_as(int child, int round, char *answer)
{
	long result = syscall(SYS_fork);
	if (result == 0) {
		CONTROL->pid[child] = getpid();
		act_as(child, round);
	}
	if (result < 0) {
		snprintf(answer, ANSWER, "-%d", errno);
		return;
	}
	CONTROL->pid[child] = result;
	CONTROL->alive[child] = 1;
	CONTROL->process[child] = child;
	snprintf(answer, ANSWER, "ok");
}

static void wait_for(int child, char *answer)
{
	int status;
	if (waitpid(CONTROL->pid[child], &status, 0) != CONTROL->pid[child])
		snprintf(answer, ANSWER, "-%d", errno);
	else if (WIFEXITED(status))
		snprintf(answer, ANSWER, "=%d", WEXITSTATUS(status));
	else
		snprintf(answer, ANSWER, "killed-by-%d", WTERMSIG(status));
}

static void finish_step(void)
{
	__atomic_fetch_add(&CONTROL->done, 1, __ATOMIC_SEQ_CST);
	wake(&CONTROL->done);
}

static void make(const struct step *step, char *answer)
{
	uint64_t at = place(step->at), to = place(step->to);
	switch (step->kind) {
	case MAP:
		say_place(call(SYS_mmap, at, step->length, step->rights, step->flags | MAP_ANONYMOUS, -1UL, step->offset), at,
			  "there", at, step->slot, answer);
		break;
	case UNMAP:
		say_result(call(SYS_munmap, at, step->length, 0, 0, 0, 0), answer);
		break;
	case PROTECT:
		say_result(call(SYS_mprotect, at, step->length, step->rights, 0, 0, 0), answer);
		break;
	case REMAP:
		say_place(call(SYS_mremap, at, step->length, step->second, step->flags, to, 0), at, "same", to, step->slot,
			  answer);
		break;
	case ADVISE:
		say_result(call(SYS_madvise, at, step->length, step->flags, 0, 0, 0), answer);
		break;
	case INCORE:
		incore(step, answer);
		break;
	case LOAD:
		load(at, answer, ANSWER);
		break;
	case STORE:
		store(at, step->value, answer, ANSWER);
		break;
	case FORK:
		fork_as(step->value, step->round, answer);
		break;
	case EXIT:
		snprintf(answer, ANSWER, "ok");
		CONTROL->alive[step->actor] = 0;
		break;
	case WAIT:
		wait_for(step->value, answer);
		break;
	case HOP:
		bind_to(cpus[step->value % cpu_count]);
		snprintf(answer, ANSWER, "ok");
		break;
	}
}

#endif
