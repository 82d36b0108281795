/* Processes: fork, exec, wait, pipes, exit statuses, orphans, descriptors over exec, shared memory between processes. */
#include "../include/workload.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *self_path;
static char **environment;

static pid_t spawn(void)
{
	pid_t pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	return pid;
}

static void expect_exit(pid_t pid, int code)
{
	int status;
	pid_t got = waitpid(pid, &status, 0);
	if (got != pid || !WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail("process %d: waitpid gave %d, status %x instead of exit %d", pid, got, status, code);
}

static void execute(const char *what, const char *argument)
{
	char *const arguments[] = {(char *)self_path, "--part", (char *)what, "--argument", (char *)argument, NULL};
	execve(self_path, arguments, environment);
	_exit(99);
}

/* ---- waiting ---- */

static void waiting(void)
{
	for (int code = 0; code < 256; code += 51) {
		pid_t pid = spawn();
		if (pid == 0)
			_exit(code);
		expect_exit(pid, code);
	}
	/* Many at once; each is reaped once and by its number. */
	pid_t children[30];
	for (int i = 0; i < 30; i++) {
		children[i] = spawn();
		if (children[i] == 0) {
			usleep(100 * (unsigned)(30 - i));
			_exit(i);
		}
	}
	char reaped[30] = {0};
	for (int i = 0; i < 30; i++) {
		int status;
		pid_t pid = wait(&status);
		int number = 0;
		while (number < 30 && children[number] != pid)
			number++;
		check(number < 30 && !reaped[number] && WIFEXITED(status) && WEXITSTATUS(status) == number);
		reaped[number] = 1;
	}
	check(wait(NULL) == -1 && errno == ECHILD);
	pid_t pid = spawn();
	if (pid == 0) {
		usleep(20000);
		_exit(0);
	}
	check(waitpid(pid, NULL, WNOHANG) == 0);
	siginfo_t information;
	check(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT) == 0 && information.si_pid == pid);
	expect_exit(pid, 0);
	check(waitpid(pid, NULL, 0) == -1 && errno == ECHILD);
}

/* A grandchild whose parent ends first goes to the reaper and must not come to us. */
static void orphans(void)
{
	int ends[2];
	char byte;
	check(pipe(ends) == 0);
	pid_t pid = spawn();
	if (pid == 0) {
		pid_t parent = getpid();
		if (spawn() == 0) {
			for (int i = 0; getppid() == parent && i < 2000; i++)
				usleep(500);
			_exit(write(ends[1], getppid() == parent ? "n" : "y", 1) == 1 ? 0 : 1);
		}
		_exit(4);
	}
	expect_exit(pid, 4);
	close(ends[1]);
	check(read(ends[0], &byte, 1) == 1 && byte == 'y');
	check(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* ---- pipes ---- */

static void pipes(void)
{
	int ends[2], back[2];
	enum { TOTAL = 300000 };
	check(pipe(ends) == 0 && pipe2(back, O_CLOEXEC) == 0);
	pid_t pid = spawn();
	if (pid == 0) {
		static unsigned char bytes[7777];
		close(ends[1]);
		unsigned long sum = 0, count = 0;
		ssize_t got;
		while ((got = read(ends[0], bytes, sizeof bytes)) > 0)
			for (ssize_t i = 0; i < got; i++)
				sum = sum * 31 + bytes[i], count++;
		if (count != TOTAL || write(back[1], &sum, sizeof sum) != sizeof sum)
			_exit(1);
		_exit(0);
	}
	close(ends[0]);
	static unsigned char bytes[5000];
	unsigned long expected = 0, sent = 0;
	while (sent < TOTAL) {
		size_t length = 1 + sent % sizeof bytes;
		if (length > TOTAL - sent)
			length = TOTAL - sent;
		for (size_t i = 0; i < length; i++) {
			bytes[i] = (unsigned char)((sent + i) * 7 >> 3);
			expected = expected * 31 + bytes[i];
		}
		for (size_t done = 0; done < length;) {
			ssize_t put = write(ends[1], bytes + done, length - done);
			check(put > 0);
			done += (size_t)put;
		}
		sent += length;
	}
	close(ends[1]);
	unsigned long sum;
	check(read(back[0], &sum, sizeof sum) == sizeof sum);
	if (sum != expected)
		fail("what came out of the pipe is not what went in");
	expect_exit(pid, 0);
	close(back[0]);
	close(back[1]);

	/* Small writes of several processes never mix. */
	check(pipe(ends) == 0);
	for (int writer = 0; writer < 4; writer++)
		if (spawn() == 0) {
			char record[128];
			memset(record, 'a' + writer, sizeof record);
			for (int i = 0; i < 200; i++)
				if (write(ends[1], record, sizeof record) != sizeof record)
					_exit(1);
			_exit(0);
		}
	close(ends[1]);
	char record[128];
	int records = 0;
	for (;; records++) {
		size_t have = 0;
		ssize_t got;
		while (have < sizeof record && (got = read(ends[0], record + have, sizeof record - have)) > 0)
			have += (size_t)got;
		if (have == 0)
			break;
		check(have == sizeof record);
		for (size_t i = 1; i < sizeof record; i++)
			if (record[i] != record[0])
				fail("two writes of 128 bytes mixed in a pipe");
	}
	check(records == 800);
	close(ends[0]);
	for (int i = 0; i < 4; i++)
		check(wait(NULL) > 0);

	check(pipe2(ends, O_NONBLOCK) == 0);
	check(read(ends[0], record, 1) == -1 && errno == EAGAIN);
	long fits = 0;
	while (write(ends[1], record, 64) == 64)
		fits += 64;
	check(errno == EAGAIN && fits == 65536);
	close(ends[0]);
	close(ends[1]);
}

/* ---- exec ---- */

/* A script's interpreter may be a script: five of them are started, six are not. */
static void nested_scripts(void)
{
	char *const one[] = {"x", NULL};
	char path[32], line[256];
	for (int i = 1; i <= 6; i++) {
		snprintf(path, sizeof path, "/tmp/script-%d", i);
		int length = i == 1 ? snprintf(line, sizeof line, "#!%s --part\n", self_path)
		                    : snprintf(line, sizeof line, "#!/tmp/script-%d\n", i - 1);
		int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0755);
		check(file >= 0 && write(file, line, length) == length && close(file) == 0);
	}
	check(execve("/tmp/script-6", one, environment) == -1 && errno == ELOOP);
	pid_t pid = spawn();
	if (pid == 0) {
		execve("/tmp/script-5", one, environment);
		_exit(99);
	}
	expect_exit(pid, 24);
	for (int i = 1; i <= 6; i++) {
		snprintf(path, sizeof path, "/tmp/script-%d", i);
		check(unlink(path) == 0);
	}
}

static void executing(void)
{
	int kept[2], closed[2];
	check(pipe(kept) == 0 && pipe2(closed, O_CLOEXEC) == 0);
	char numbers[64];
	snprintf(numbers, sizeof numbers, "%d,%d", kept[1], closed[1]);
	signal(SIGUSR1, SIG_IGN);
	pid_t pid = spawn();
	if (pid == 0)
		execute("descriptors", numbers);
	expect_exit(pid, 21);
	char text[6] = "";
	check(read(kept[0], text, 5) == 5 && strcmp(text, "hello") == 0);
	signal(SIGUSR1, SIG_DFL);
	for (int i = 0; i < 2; i++) {
		close(kept[i]);
		close(closed[i]);
	}

	/* A long list of arguments arrives whole. */
	pid = spawn();
	if (pid == 0) {
		enum { MANY = 2000 };
		static char *arguments[MANY + 6];
		static char texts[MANY][32];
		arguments[0] = (char *)self_path;
		arguments[1] = "--part";
		arguments[2] = "many";
		for (int i = 0; i < MANY; i++) {
			snprintf(texts[i], sizeof texts[i], "argument-number-%d", i);
			arguments[3 + i] = texts[i];
		}
		execve(self_path, arguments, environment);
		_exit(99);
	}
	expect_exit(pid, 22);

	/* What cannot be executed gives its errno and leaves the caller running. */
	char *const nothing[] = {NULL}, *const one[] = {"x", NULL};
	check(execve("/no/such/file", one, nothing) == -1 && errno == ENOENT);
	check(execve("/", one, nothing) == -1 && errno == EACCES);
	int file = open("/tmp/not-a-program", O_CREAT | O_WRONLY | O_TRUNC, 0755);
	if (file >= 0) {
		check(write(file, "neither ELF nor script\n", 23) == 23 && close(file) == 0);
		check(execve("/tmp/not-a-program", one, nothing) == -1 && errno == ENOEXEC);
		check(chmod("/tmp/not-a-program", 0644) == 0);
		check(execve("/tmp/not-a-program", one, nothing) == -1 && errno == EACCES);
		check(unlink("/tmp/not-a-program") == 0);
	}
	check(syscall(SYS_execve, 8ul, one, nothing) == -1 && errno == EFAULT);
	check(syscall(SYS_execve, self_path, 8ul, nothing) == -1 && errno == EFAULT);
	nested_scripts();
}

static int executed_part(int argc, char **argv)
{
	if (strcmp(argv[2], "many") == 0) {
		char text[32];
		for (int i = 0; i < 2000; i++) {
			snprintf(text, sizeof text, "argument-number-%d", i);
			check(argc == 2003 && strcmp(argv[3 + i], text) == 0);
		}
		return 22;
	}
	if (strncmp(argv[2], "/tmp/script-", 12) == 0) {
		check(argc == 7 && strcmp(argv[2], "/tmp/script-1") == 0 && strcmp(argv[6], "/tmp/script-5") == 0);
		return 24;
	}
	check(argc == 5 && strcmp(argv[2], "descriptors") == 0);
	int kept, closed;
	check(sscanf(argv[4], "%d,%d", &kept, &closed) == 2);
	check(write(kept, "hello", 5) == 5);
	check(write(closed, "x", 1) == -1 && errno == EBADF);
	struct sigaction action;
	check(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
	return 21;
}

/* ---- memory that processes share ---- */

struct shared {
	pthread_mutex_t lock;
	pthread_barrier_t barrier;
	long count;
	long filler[3000];
};

static void sharing(void)
{
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	pthread_mutexattr_t mutex;
	pthread_barrierattr_t barrier;
	check(pthread_mutexattr_init(&mutex) == 0 && pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED) == 0);
	check(pthread_barrierattr_init(&barrier) == 0 && pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED) == 0);
	check(pthread_mutex_init(&shared->lock, &mutex) == 0 && pthread_barrier_init(&shared->barrier, &barrier, 4) == 0);
	pid_t children[4];
	for (int i = 0; i < 4; i++) {
		children[i] = spawn();
		if (children[i])
			continue;
		pthread_barrier_wait(&shared->barrier);
		for (int round = 0; round < 1000; round++) {
			pthread_mutex_lock(&shared->lock);
			shared->count++;
			shared->filler[round * 3 % 3000] += i + 1;
			pthread_mutex_unlock(&shared->lock);
		}
		pthread_barrier_wait(&shared->barrier);
		_exit(shared->count == 4000 ? 0 : 1);
	}
	for (int i = 0; i < 4; i++)
		expect_exit(children[i], 0);
	check(shared->count == 4000 && shared->filler[0] == 10 && shared->filler[2997] == 10);
	check(munmap(shared, sizeof *shared) == 0);

	/* Private memory is not shared, however deep the family. */
	volatile long *private = mmap(NULL, 20 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(private != MAP_FAILED);
	for (int i = 0; i < 20; i++)
		private[i * 512] = i;
	pid_t pid = spawn();
	if (pid == 0) {
		private[512] = 100;
		pid_t deeper = spawn();
		if (deeper == 0) {
			private[1024] = 200;
			_exit(private[512] == 100 && private[0] == 0 && private[1024] == 200 ? 0 : 1);
		}
		int status;
		waitpid(deeper, &status, 0);
		_exit(status == 0 && private[512] == 100 && private[1024] == 2 ? 0 : 1);
	}
	private[0] = 300;
	expect_exit(pid, 0);
	for (int i = 1; i < 20; i++)
		check(private[i * 512] == i);
}

/* fork and exit again and again: what a process held must all come back. */
static void many(void)
{
	for (int i = 0; i < 200; i++) {
		pid_t pid = i % 2 ? vfork() : fork();
		check(pid >= 0);
		if (pid == 0)
			_exit(i % 7);
		expect_exit(pid, i % 7);
	}
	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();
		check(pid >= 0);
		if (pid == 0) {
			char *const arguments[] = {(char *)self_path, "--part", "exit", NULL};
			execve(self_path, arguments, environment);
			_exit(99);
		}
		expect_exit(pid, 23);
	}
}

int main(int argc, char **argv, char **envp)
{
	if (argc == 3 && strcmp(argv[1], "--part") == 0 && strcmp(argv[2], "exit") == 0)
		return 23;
	if (argc >= 4 && strcmp(argv[1], "--part") == 0)
		return executed_part(argc, argv);
	if (argc > 1)
		refuse("%s: no arguments are taken", argv[1]);
	environment = envp;
	self_path = access(argv[0], X_OK) == 0 ? argv[0] : "/proc/self/exe";
	waiting();
	orphans();
	pipes();
	executing();
	sharing();
	many();
	puts("ok");
	return 0;
}
