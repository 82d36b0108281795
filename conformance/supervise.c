/* Runs the cases of a conformance suite inside the guest, on either kernel, and says how each ended.
 *
 *     supervise [--jobs N] [--seconds N] LIST
 *
 * LIST has one case a line: its name, a blank, and the program with its arguments. Each case has a session and an empty folder of its
 * own, reads /dev/null, and is killed with all that it started when its time is over. For each one line is printed:
 *
 *     case NAME exit STATUS | signal NUMBER | timeout
 *
 * After a case that did not exit with 0, the last lines that it printed follow, each behind "| ". Only the plainest system calls are
 * used, so that a kernel that fails a case can still say so.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_JOBS 32
#define MOST_ARGUMENTS 32
#define SHOWN_BYTES 600

struct job {
	pid_t process;
	time_t deadline;
	char name[200];
	int killed;
};

static struct job jobs[MOST_JOBS];
static int seconds = 30;

static time_t now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec;
}

static void output_path(int slot, char *path, size_t size)
{
	snprintf(path, size, "/tmp/output-%d", slot);
}

/* In the child: does not return. */
static void become(int slot, char *command)
{
	char *arguments[MOST_ARGUMENTS + 1], folder[64], path[64];
	int count = 0;
	for (char *word = strtok(command, " "); word && count < MOST_ARGUMENTS; word = strtok(NULL, " "))
		arguments[count++] = word;
	arguments[count] = NULL;
	setsid();
	snprintf(folder, sizeof folder, "/tmp/case-%d-%ld", slot, (long)getpid());
	mkdir(folder, 0777);
	chmod(folder, 0777);
	if (chdir(folder))
		_exit(126);
	output_path(slot, path, sizeof path);
	int input = open("/dev/null", O_RDONLY), output = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (input < 0 || output < 0)
		_exit(126);
	dup2(input, 0);
	dup2(output, 1);
	dup2(output, 2);
	if (input > 2)
		close(input);
	if (output > 2)
		close(output);
	execv(arguments[0], arguments);
	_exit(127);
}

static void start(int slot, char *line)
{
	char *command = strchr(line, ' ');
	if (!command) {
		fprintf(stderr, "supervise: a line without a program: %s\n", line);
		exit(2);
	}
	*command++ = 0;
	if (strlen(line) >= sizeof jobs[slot].name) {
		fprintf(stderr, "supervise: too long a name: %s\n", line);
		exit(2);
	}
	strcpy(jobs[slot].name, line);
	jobs[slot].killed = 0;
	jobs[slot].deadline = now() + seconds;
	pid_t child = fork();
	if (child < 0) {
		printf("case %s fork %d\n", line, errno);
		return;
	}
	if (child == 0)
		become(slot, command);
	jobs[slot].process = child;
}

/* The end of what the case printed, without bytes that are no text. */
static void show_output(int slot)
{
	char path[64], text[SHOWN_BYTES + 1];
	output_path(slot, path, sizeof path);
	int file = open(path, O_RDONLY);
	if (file < 0)
		return;
	off_t length = lseek(file, 0, SEEK_END);
	lseek(file, length > SHOWN_BYTES ? length - SHOWN_BYTES : 0, SEEK_SET);
	ssize_t got = read(file, text, SHOWN_BYTES);
	close(file);
	int fresh = 1;
	for (ssize_t at = 0; at < got; at++) {
		if (fresh)
			fputs("| ", stdout);
		fresh = text[at] == '\n';
		putchar(text[at] == '\n' || (text[at] >= ' ' && text[at] <= '~') ? text[at] : '?');
	}
	if (!fresh)
		putchar('\n');
}

static void finish(int slot, int status)
{
	struct job *job = &jobs[slot];
	kill(-job->process, SIGKILL);
	job->process = 0;
	if (job->killed)
		printf("case %s timeout\n", job->name);
	else if (WIFSIGNALED(status))
		printf("case %s signal %d\n", job->name, WTERMSIG(status));
	else
		printf("case %s exit %d\n", job->name, WEXITSTATUS(status));
	if (job->killed || status)
		show_output(slot);
	fflush(stdout);
}

/* Looks at every job once; answers how many still run. */
static int look(void)
{
	int running = 0, status;
	for (int slot = 0; slot < MOST_JOBS; slot++) {
		if (!jobs[slot].process)
			continue;
		if (waitpid(jobs[slot].process, &status, WNOHANG) == jobs[slot].process) {
			finish(slot, status);
			continue;
		}
		running++;
		if (!jobs[slot].killed && now() >= jobs[slot].deadline) {
			jobs[slot].killed = 1;
			kill(-jobs[slot].process, SIGKILL);
			kill(jobs[slot].process, SIGKILL);
		}
	}
	return running;
}

static int free_slot(int most)
{
	for (int slot = 0; slot < most; slot++)
		if (!jobs[slot].process)
			return slot;
	return -1;
}

static void rest(void)
{
	struct timespec moment = {.tv_nsec = 5000000};
	nanosleep(&moment, NULL);
}

int main(int count, char **arguments)
{
	int most = 1, at = 1;
	for (; at + 1 < count && arguments[at][0] == '-'; at += 2) {
		int value = atoi(arguments[at + 1]);
		if (strcmp(arguments[at], "--jobs") == 0 && value >= 1 && value <= MOST_JOBS)
			most = value;
		else if (strcmp(arguments[at], "--seconds") == 0 && value >= 1)
			seconds = value;
		else
			count = 0;
	}
	FILE *list = at + 1 == count ? fopen(arguments[at], "re") : NULL;
	if (!list) {
		fputs("usage: supervise [--jobs 1..32] [--seconds N] LIST\n", stderr);
		return 2;
	}
	char line[1024];
	while (fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = 0;
		if (!line[0])
			continue;
		while (free_slot(most) < 0) {
			look();
			if (free_slot(most) < 0)
				rest();
		}
		start(free_slot(most), line);
	}
	while (look())
		rest();
	puts("end of cases");
	return 0;
}
