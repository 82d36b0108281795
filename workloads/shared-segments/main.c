/* What System V's shared memory, sealed files and rearranged mappings promise, in the words of their manual pages: keys and rights, how often a
 * segment is attached, when it goes, what a seal forbids. Each part runs in a child of its own. Passes on Linux as it does here.
 */
#include "../include/expected-errors.h"
#include "../include/parts.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>

#define KEY 0x5ea1
#define NOBODY 65534

static struct shmid_ds status(int segment)
{
	struct shmid_ds status;
	check(shmctl(segment, IPC_STAT, &status) == 0);
	return status;
}

static int fresh_segment(size_t size)
{
	int segment = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	check(segment >= 0);
	return segment;
}

static char *attach(int segment, int flags)
{
	char *memory = shmat(segment, NULL, flags);
	check(memory != (char *)-1);
	return memory;
}

/* What one writes the other reads; the memory goes with the last attachment, the number at once when nobody has it. */
static void sharing(void)
{
	int segment = fresh_segment(2 * PAGE);
	check(status(segment).shm_nattch == 0 && status(segment).shm_segsz == 2 * PAGE);
	check(status(segment).shm_atime == 0 && status(segment).shm_cpid == getpid());
	volatile char *memory = attach(segment, 0), *twice = attach(segment, SHM_RDONLY);
	check(memory[0] == 0 && status(segment).shm_nattch == 2 && status(segment).shm_lpid == getpid());
	memory[PAGE] = 'a';
	check(twice[PAGE] == 'a');
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		time_t before = time(NULL);
		check(status(segment).shm_nattch == 4);
		memory[0] = 'c';
		check(shmdt((char *)memory) == 0 && shmdt((char *)twice) == 0);
		check(status(segment).shm_lpid == getpid() && status(segment).shm_dtime >= before);
		_exit(0);
	}
	int how;
	check(waitpid(child, &how, 0) == child && how == 0);
	check(memory[0] == 'c' && status(segment).shm_nattch == 2);
	check(shmctl(segment, IPC_RMID, NULL) == 0);
	check(status(segment).shm_perm.mode & SHM_DEST && status(segment).shm_perm.__key == IPC_PRIVATE);
	check(shmdt((char *)memory) == 0 && twice[PAGE] == 'a' && shmdt((char *)twice) == 0);
	struct shmid_ds gone;
	EXPECT(EINVAL, shmctl(segment, IPC_STAT, &gone));
	EXPECT(EINVAL, shmat(segment, NULL, 0));
	EXPECT(EINVAL, shmdt((char *)memory));
}

static void keys(void)
{
	int segment = shmget(KEY, PAGE + 1, IPC_CREAT | IPC_EXCL | 0640);
	check(segment >= 0 && shmget(KEY, PAGE, 0) == segment && shmget(KEY, 0, IPC_CREAT) == segment);
	EXPECT(EEXIST, shmget(KEY, PAGE, IPC_CREAT | IPC_EXCL));
	EXPECT(EINVAL, shmget(KEY, 2 * PAGE, 0));
	EXPECT(ENOENT, shmget(KEY + 1, PAGE, 0));
	EXPECT(EINVAL, shmget(IPC_PRIVATE, 0, IPC_CREAT));
	struct shmid_ds old = status(segment), new = old;
	check(old.shm_perm.__key == KEY && old.shm_perm.mode == 0640 && old.shm_perm.cuid == 0);
	new.shm_perm.mode = 0604;
	new.shm_perm.gid = 7;
	check(shmctl(segment, IPC_SET, &new) == 0);
	check(status(segment).shm_perm.mode == 0604 && status(segment).shm_perm.gid == 7 && status(segment).shm_perm.cgid == 0);
	check(shmctl(segment, SHM_LOCK, NULL) == 0 && status(segment).shm_perm.mode == (0604 | SHM_LOCKED));
	check(shmctl(segment, SHM_UNLOCK, NULL) == 0 && status(segment).shm_perm.mode == 0604);
	EXPECT(EINVAL, shmctl(segment, 99, NULL));
	EXPECT(EINVAL, shmctl(-1, IPC_STAT, &new));
	EXPECT(EFAULT, shmctl(segment, IPC_STAT, (struct shmid_ds *)-1));
	EXPECT(EFAULT, shmctl(segment, IPC_SET, (struct shmid_ds *)-1));
	check(shmctl(segment, IPC_RMID, NULL) == 0);
	EXPECT(ENOENT, shmget(KEY, PAGE, 0));
}

/* All segments together, and one by its place among them. */
static void all(void)
{
	struct shminfo bounds;
	struct shm_info use;
	struct shmid_ds found;
	int segment = fresh_segment(3 * PAGE);
	int highest = shmctl(0, IPC_INFO, (struct shmid_ds *)&bounds);
	check(highest >= 0 && bounds.shmmin == 1 && bounds.shmmni == 4096 && bounds.shmmax > 1UL << 40);
	check(shmctl(0, SHM_INFO, (struct shmid_ds *)&use) == highest && use.used_ids >= 1 && use.shm_tot >= 3);
	int seen = 0;
	for (int place = 0; place <= highest; place++)
		if (shmctl(place, SHM_STAT, &found) == segment)
			seen += found.shm_segsz == 3 * PAGE;
	check(seen == 1);
	FILE *table = fopen("/proc/sysvipc/shm", "r");
	char line[400];
	int key, number, lines = 0;
	unsigned mode;
	unsigned long size;
	check(table && fgets(line, sizeof line, table));
	while (fgets(line, sizeof line, table))
		if (sscanf(line, "%d %d %o %lu", &key, &number, &mode, &size) == 4 && number == segment)
			lines += key == 0 && mode == 0600 && size == 3 * PAGE;
	check(lines == 1 && fclose(table) == 0);
	check(shmctl(segment, IPC_RMID, NULL) == 0);
}

static void rights(void)
{
	int secret = fresh_segment(PAGE), open = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0604);
	check(open >= 0);
	check(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	struct shmid_ds found;
	EXPECT(EACCES, shmat(secret, NULL, SHM_RDONLY));
	EXPECT(EACCES, shmctl(secret, IPC_STAT, &found));
	EXPECT(EACCES, shmat(open, NULL, 0));
	check(attach(open, SHM_RDONLY)[0] == 0);
	EXPECT(EPERM, shmctl(open, IPC_RMID, NULL));
	found = status(open);
	EXPECT(EPERM, shmctl(open, IPC_SET, &found));
}

static void places(void)
{
	int segment = fresh_segment(2 * PAGE);
	char *room = mmap(NULL, 6 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(room != MAP_FAILED && munmap(room + PAGE, 2 * PAGE) == 0);
	EXPECT(EINVAL, shmat(segment, room, 0));
	EXPECT(EINVAL, shmat(segment, room + PAGE + 1, 0));
	EXPECT(EINVAL, shmat(segment, NULL, SHM_REMAP));
	check(shmat(segment, room + PAGE + 1, SHM_RND) == room + PAGE);
	check(shmat(segment, room + 3 * PAGE, SHM_REMAP) == room + 3 * PAGE);
	/* The compiler takes the two for different memory. */
	*(volatile char *)(room + PAGE) = 'x';
	check(*(volatile char *)(room + 3 * PAGE) == 'x');
	EXPECT(EINVAL, shmdt(room + 2 * PAGE));
	EXPECT(EINVAL, shmdt(room + PAGE + 1));
	/* A part may be unmapped before. */
	check(munmap(room + PAGE, PAGE) == 0 && shmdt(room + PAGE) == 0 && status(segment).shm_nattch == 1);
	check(shmdt(room + 3 * PAGE) == 0 && status(segment).shm_nattch == 0);
	/* What was attached for reading never becomes writable. */
	char *fixed = attach(segment, SHM_RDONLY);
	EXPECT(EACCES, mprotect(fixed, PAGE, PROT_READ | PROT_WRITE));
	check(shmctl(segment, IPC_RMID, NULL) == 0);
}

static int sealable(void)
{
	int file = syscall(SYS_memfd_create, "sealed", 2 /* MFD_ALLOW_SEALING */);
	check(file >= 0 && ftruncate(file, 2 * PAGE) == 0 && fcntl(file, F_GET_SEALS) == 0);
	return file;
}

static void seals(void)
{
	int plain = syscall(SYS_memfd_create, "plain", 0), tube[2];
	check(plain >= 0 && fcntl(plain, F_GET_SEALS) == F_SEAL_SEAL && pipe(tube) == 0);
	EXPECT(EPERM, fcntl(plain, F_ADD_SEALS, F_SEAL_GROW));
	EXPECT(EINVAL, fcntl(tube[0], F_GET_SEALS));
	int file = sealable();
	EXPECT(EINVAL, fcntl(file, F_ADD_SEALS, 0x1000));
	check(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	EXPECT(EPERM, ftruncate(file, PAGE));
	check(ftruncate(file, 3 * PAGE) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_GROW) == 0);
	EXPECT(EPERM, ftruncate(file, 4 * PAGE));
	EXPECT(EPERM, fallocate(file, 0, 0, 4 * PAGE));
	EXPECT(EPERM, pwrite(file, "xy", 2, 3 * PAGE));
	check(pwrite(file, "xy", 2, 3 * PAGE - 2) == 2 && fcntl(file, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW));
	char *shown = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(shown != MAP_FAILED);
	EXPECT(EBUSY, fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
	check(munmap(shown, PAGE) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0);
	EXPECT(EPERM, write(file, "x", 1));
	EXPECT(EPERM, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT(EPERM, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
	char *seen = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	check(seen != MAP_FAILED);
	EXPECT(EACCES, mprotect(seen, PAGE, PROT_READ | PROT_WRITE));
	char *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	check(copy != MAP_FAILED);
	copy[0] = 'p';
	check(fcntl(file, F_ADD_SEALS, F_SEAL_SEAL) == 0);
	EXPECT(EPERM, fcntl(file, F_ADD_SEALS, F_SEAL_GROW));
}

/* A seal against later writing leaves the mappings that there are alone. */
static void later_seal(void)
{
	int file = sealable();
	volatile char *shown = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(shown != MAP_FAILED && fcntl(file, F_ADD_SEALS, 0x10 /* F_SEAL_FUTURE_WRITE */) == 0);
	shown[1] = 'q';
	EXPECT(EPERM, write(file, "x", 1));
	EXPECT(EPERM, mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, file, 0));
	char *seen = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	check(seen != MAP_FAILED && seen[1] == 'q');
	EXPECT(EACCES, mprotect(seen, PAGE, PROT_READ | PROT_WRITE));
	/* Other pages in the place of the old are a new mapping. (Linux has removed the old one by the time it refuses.) */
	EXPECT(0, remap_file_pages(seen, PAGE, 0, 1, 0));
	EXPECT(EACCES, mprotect(seen, PAGE, PROT_READ | PROT_WRITE));
	EXPECT(EPERM, remap_file_pages((char *)shown, PAGE, 0, 1, 0));
}

static void rearranged(void)
{
	int file = sealable();
	check(ftruncate(file, 4 * PAGE) == 0);
	volatile char *shown = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(shown != MAP_FAILED);
	for (int page = 0; page < 4; page++)
		shown[page * PAGE] = '0' + page;
	check(remap_file_pages((char *)shown, PAGE, 0, 3, 0) == 0 && remap_file_pages((char *)shown + 3 * PAGE, PAGE, 0, 0, 0) == 0);
	check(shown[0] == '3' && shown[PAGE] == '1' && shown[3 * PAGE] == '0');
	shown[0] = 'z';
	char last;
	check(pread(file, &last, 1, 3 * PAGE) == 1 && last == 'z');
	EXPECT(EINVAL, remap_file_pages((char *)shown, PAGE, PROT_READ, 3, 0));
	EXPECT(EINVAL, remap_file_pages((char *)shown, 0, 0, 3, 0));
	EXPECT(EINVAL, remap_file_pages(fresh(1, PROT_READ, MAP_PRIVATE), PAGE, 0, 0, 0));
	EXPECT(EOVERFLOW, remap_file_pages((char *)shown, PAGE, 0, 1UL << 51, 0));
	EXPECT(0, remap_file_pages((char *)shown, PAGE, 0, (1UL << 51) - 2, MAP_NONBLOCK));
	/* Whose stores nobody could ever see shares nothing. */
	int program = open("/proc/self/exe", O_RDONLY);
	char *seen = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, program, 0);
	check(program >= 0 && seen != MAP_FAILED);
	EXPECT(EINVAL, remap_file_pages(seen, PAGE, 0, 0, 0));
}

/* Other pages in the place of those that a monitor watches: it does not watch these. */
static void rearranged_and_watched(void)
{
	struct uffdio_api interface = {.api = UFFD_API};
	int monitor = syscall(SYS_userfaultfd, 0);
	volatile char *shown = fresh(2, PROT_READ | PROT_WRITE, MAP_SHARED);
	struct uffdio_register watched = {{(uintptr_t)shown, 2 * PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
	check(monitor >= 0 && ioctl(monitor, UFFDIO_API, &interface) == 0 && ioctl(monitor, UFFDIO_REGISTER, &watched) == 0);
	check(remap_file_pages((char *)shown, PAGE, 0, 1, 0) == 0 && shown[0] == 0);
	shown[0] = 'w';
	check(shown[PAGE] == 'w');
}

static int can_be_read(const char *name)
{
	char text[1 << 16];
	ssize_t got;
	int file = open(name, O_RDONLY);
	check(file >= 0);
	while ((got = read(file, text, sizeof text)) > 0)
		;
	/* A kernel may find that there is not memory enough for all of it. */
	int whole = got == 0 || errno == ENOMEM;
	close(file);
	return whole;
}

/* As many mappings as there may be, nearly: what goes through all of them goes on. */
static void among_many(void)
{
	const size_t pages = 64000;
	int segment = fresh_segment(2 * PAGE);
	char *many = fresh(pages, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
	for (size_t page = 1; page < pages; page += 2)
		check(mprotect(many + page * PAGE, PAGE, PROT_READ) == 0);
	char *memory = attach(segment, 0);
	check(munmap(memory, PAGE) == 0 && shmdt(memory) == 0 && status(segment).shm_nattch == 0);
	check(can_be_read("/proc/self/maps") && can_be_read("/proc/self/smaps") && can_be_read("/proc/self/statm"));
	check(shmctl(segment, IPC_RMID, NULL) == 0);
}

/* The last line of an area in smaps. */
static void marks(void)
{
	char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), line[400];
	check(memory != MAP_FAILED && mlock(memory, PAGE) == 0 && madvise(memory, PAGE, MADV_DONTFORK) == 0);
	FILE *areas = fopen("/proc/self/smaps", "r");
	int within = 0, seen = 0;
	check(areas);
	while (fgets(line, sizeof line, areas)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			within = start == (unsigned long)memory;
		if (within && strncmp(line, "VmFlags:", 8) == 0)
			seen += strstr(line, " rd wr sh ") && strstr(line, " lo ") && strstr(line, " dc ") && !strstr(line, " ex ");
	}
	check(seen == 1);
}

int main(void)
{
	RUN(sharing);
	RUN(keys);
	RUN(all);
	RUN(rights);
	RUN(places);
	RUN(seals);
	RUN(later_seal);
	RUN(rearranged);
	RUN(rearranged_and_watched);
	RUN(marks);
	RUN(among_many);
	puts("ok");
	return 0;
}
