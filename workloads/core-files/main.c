/* Core files: which ends leave one, what the parent hears, and that it has the program's memory and registers. Passes on Linux as it does here. */
#include "../include/parts.h"
#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char *marked, *hidden;

/* A child that ends by a signal, beside what is there; what `waitid` says of it. */
static siginfo_t ended_beside(int signal, rlim_t most)
{
	siginfo_t told;
	struct rlimit limit = {most, RLIM_INFINITY};
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(setrlimit(RLIMIT_CORE, &limit) == 0);
		marked = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		hidden = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		strcpy(marked + 2 * PAGE, "this is in the file");
		strcpy(hidden, "and this is not");
		check(madvise(hidden, PAGE, MADV_DONTDUMP) == 0);
		raise(signal);
		_exit(9);
	}
	check(waitid(P_PID, child, &told, WEXITED | WNOWAIT) == 0 && told.si_pid == child);
	int how;
	check(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == signal && told.si_status == signal);
	check(!WCOREDUMP(how) == (told.si_code != CLD_DUMPED));
	return told;
}

static siginfo_t ended_by(int signal, rlim_t most)
{
	unlink("core");
	return ended_beside(signal, most);
}

static void contents(void)
{
	check(ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED);
	int file = open("core", O_RDONLY);
	struct stat status;
	check(file >= 0 && fstat(file, &status) == 0 && (status.st_mode & 07777) == 0600);
	ssize_t size = status.st_size;
	char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
	check(bytes != MAP_FAILED);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	check(size > (ssize_t)sizeof *header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_type == ET_CORE);
	check(header->e_machine == EM_X86_64 && header->e_phentsize == sizeof(Elf64_Phdr));
	Elf64_Phdr *parts = (Elf64_Phdr *)(bytes + header->e_phoff);
	int found = 0, known = 0;
	for (int part = 0; part < header->e_phnum; part++) {
		char *place = bytes + parts[part].p_offset;
		check(parts[part].p_offset + parts[part].p_filesz <= (size_t)status.st_size);
		if (parts[part].p_type == PT_LOAD && parts[part].p_filesz > 0)
			found += memmem(place, parts[part].p_filesz, "this is in the file", 20) != NULL;
		if (parts[part].p_type == PT_NOTE) {
			Elf64_Nhdr *note = (Elf64_Nhdr *)place;
			struct elf_prstatus *registers = (struct elf_prstatus *)((char *)(note + 1) + 8);
			known += note->n_type == NT_PRSTATUS && note->n_descsz == sizeof *registers && registers->pr_cursig == SIGSEGV;
		}
	}
	/* The program's own text and data have both sentences; the mapping that is not to be dumped is in no part. */
	check(known == 1 && found >= 1);
	for (int part = 0; part < header->e_phnum; part++)
		if (parts[part].p_type == PT_LOAD && parts[part].p_memsz == PAGE && parts[part].p_filesz == PAGE)
			check(strcmp(bytes + parts[part].p_offset, "and this is not") != 0);
}

static void which(void)
{
	int all[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
	int none[] = {SIGHUP, SIGINT, SIGKILL, SIGUSR1, SIGPIPE, SIGALRM, SIGTERM};
	for (size_t at = 0; at < sizeof all / sizeof *all; at++)
		check(ended_by(all[at], RLIM_INFINITY).si_code == CLD_DUMPED && access("core", F_OK) == 0);
	for (size_t at = 0; at < sizeof none / sizeof *none; at++)
		check(ended_by(none[at], RLIM_INFINITY).si_code == CLD_KILLED && access("core", F_OK) == -1);
	check(ended_by(SIGSEGV, 0).si_code == CLD_KILLED && access("core", F_OK) == -1);
}

/* The file is always a new one. */
static void occupied(void)
{
	struct stat status;
	char kept[4];
	unlink("core");
	check(mkfifo("core", 0600) == 0);
	check(ended_beside(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED && lstat("core", &status) == 0 && S_ISREG(status.st_mode));
	unlink("core");
	int other = open("other", O_RDWR | O_CREAT, 0666);
	check(other >= 0 && write(other, "kept", 4) == 4 && link("other", "core") == 0);
	check(ended_beside(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED && lstat("core", &status) == 0 && status.st_nlink == 1);
	check(pread(other, kept, 4, 0) == 4 && memcmp(kept, "kept", 4) == 0 && fstat(other, &status) == 0 && status.st_size == 4);
	unlink("core");
	check(symlink("other", "core") == 0);
	check(ended_beside(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED && lstat("core", &status) == 0 && S_ISREG(status.st_mode));
	unlink("core");
	check(mkdir("core", 0700) == 0 && ended_beside(SIGSEGV, RLIM_INFINITY).si_code == CLD_KILLED && rmdir("core") == 0);
	umask(0200);
	check(ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_KILLED);
	umask(022);
}

/* Who does not want to be looked at has children like that; who becomes somebody else has memory from before. */
static void not_dumpable(void)
{
	int how;
	check(prctl(PR_GET_DUMPABLE) == 1 && prctl(PR_SET_DUMPABLE, 0) == 0);
	check(ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_KILLED && access("core", F_OK) == -1);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0)
		_exit(prctl(PR_GET_DUMPABLE));
	check(waitpid(child, &how, 0) == child && how == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
	child = fork();
	check(child >= 0);
	if (child == 0) {
		check(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0 && setuid(65534) == 0);
		int signal = -1;
		check(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == 0 && prctl(PR_GET_DUMPABLE) == 0);
		check(ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_KILLED && access("core", F_OK) == -1);
		check(prctl(PR_SET_DUMPABLE, 1) == 0 && ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED);
		_exit(0);
	}
	check(waitpid(child, &how, 0) == child && how == 0);
}

/* What was mapped and never used costs nothing, however large it is. */
static void large_and_empty(void)
{
	const size_t huge = 1UL << 45;
	char *untouched = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(untouched != MAP_FAILED && ended_by(SIGSEGV, RLIM_INFINITY).si_code == CLD_DUMPED);
	int file = open("core", O_RDONLY), found = 0;
	Elf64_Ehdr header;
	Elf64_Phdr part;
	check(file >= 0 && read(file, &header, sizeof header) == sizeof header);
	for (int at = 0; at < header.e_phnum; at++) {
		check(pread(file, &part, sizeof part, header.e_phoff + at * sizeof part) == sizeof part);
		found += part.p_type == PT_LOAD && part.p_vaddr == (uintptr_t)untouched && part.p_memsz == huge && part.p_filesz == 0;
	}
	check(found == 1);
}

int main(void)
{
	char folder[] = "/tmp/core-XXXXXX";
	check(mkdtemp(folder) && chdir(folder) == 0 && chmod(folder, 0777) == 0);
	RUN(contents);
	RUN(which);
	RUN(occupied);
	RUN(not_dumpable);
	RUN(large_and_empty);
	unlink("core");
	puts("ok");
	return 0;
}
