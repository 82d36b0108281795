/* Loads and stores that may fault: the fault is recovered by moving the saved instruction pointer to a label, so that the program goes on
 * at once, in the same thread and on the same CPU.
 */
#ifndef FAULTING_H
#define FAULTING_H

#include "workload.h"
#include <signal.h>
#include <ucontext.h>

#define FAULTED (-1L)

/* Loads or stores; gives FAULTED if the access faulted. */
long load(volatile long *place);
long store(volatile long *place, long value);
__asm__(".text\n"
	".globl load\n.type load, @function\nload:\n\tmov (%rdi), %rax\n\tret\n"
	".globl store\n.type store, @function\nstore:\n\tmov %rsi, (%rdi)\n\txor %eax, %eax\n\tret\n"
	".globl faulted\nfaulted:\n\tmov $-1, %rax\n\tret\n");
extern char faulted[];

static void on_fault(int signal, siginfo_t *information, void *context)
{
	ucontext_t *registers = context;
	uintptr_t place = (uintptr_t)registers->uc_mcontext.gregs[REG_RIP];
	(void)signal;
	if (place != (uintptr_t)load && place != (uintptr_t)store)
		end_with(1, "a fault at %p by the instruction at %lx", information->si_addr, (unsigned long)place);
	registers->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)faulted;
}

/* From here on `load` and `store` may fault. */
static void recover_from_faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	check(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

#endif
