/* Files as programs see them: every line states what Linux returns, and is true on Linux too.
 *
 * Works in a fresh directory below /tmp, which it leaves empty. Takes the name of one part, or none for all. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

static void failed(int line, const char *what, long got, int error, long wanted, int wanted_error) {
    fprintf(stderr, "line %d: %s gave %ld (%s), not %ld (%s)\n", line, what, got, got < 0 ? strerror(error) : "-",
            wanted, wanted < 0 ? strerror(wanted_error) : "-");
    failures++;
}

/* The call returns this value. */
#define GIVES(value, call)                                                  \
    do {                                                                    \
        errno = 0;                                                          \
        long got_ = (long)(call);                                           \
        if (got_ != (long)(value)) failed(__LINE__, #call, got_, errno, (long)(value), 0); \
    } while (0)
/* The call fails with this error. */
#define FAILS(error, call)                                                  \
    do {                                                                    \
        errno = 0;                                                          \
        long got_ = (long)(call);                                           \
        int error_ = errno;                                                 \
        if (got_ != -1 || error_ != (error)) failed(__LINE__, #call, got_, error_, -1, (error)); \
    } while (0)
/* The condition holds. */
#define HOLDS(condition)                                                    \
    do {                                                                    \
        if (!(condition)) failed(__LINE__, #condition, 0, 0, 1, 0);         \
    } while (0)
/* The call succeeds; its value is the expression's. */
#define DONE(call)                                                          \
    ({                                                                      \
        errno = 0;                                                          \
        long got_ = (long)(call);                                           \
        if (got_ < 0) failed(__LINE__, #call, got_, errno, 0, 0);           \
        (int)got_;                                                          \
    })

/* No memory is there. Volatile, so that the compiler does not warn of what is meant. */
static void *volatile nowhere = (void *)16;

static int file_with(const char *path, const char *text) {
    int fd = DONE(open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
    GIVES(strlen(text), write(fd, text, strlen(text)));
    return fd;
}

static void paths(void) {
    struct stat one, other;
    char longest[PATH_MAX + 10];
    GIVES(0, mkdir("d", 0755));
    FAILS(EEXIST, mkdir("d", 0755));
    FAILS(EEXIST, mkdir("d/", 0755));
    FAILS(EEXIST, mkdir(".", 0755));
    FAILS(EEXIST, mkdir("/", 0755));
    FAILS(ENOENT, mkdir("", 0755));
    FAILS(ENOENT, mkdir("no/way", 0755));
    GIVES(0, mkdir("slash/", 0755));
    GIVES(0, rmdir("slash/"));
    close(file_with("f", "x"));
    FAILS(ENOTDIR, open("f/g", O_RDONLY));
    FAILS(ENOTDIR, open("f/", O_RDONLY));
    FAILS(ENOTDIR, stat("f/", &one));
    FAILS(EISDIR, open("new/", O_CREAT | O_WRONLY, 0644));
    FAILS(EISDIR, open("d", O_WRONLY));
    FAILS(EISDIR, open("d", O_CREAT | O_RDONLY, 0644));
    FAILS(ENOTDIR, open("f", O_DIRECTORY));
    FAILS(EEXIST, open("f", O_CREAT | O_EXCL | O_RDWR, 0644));
    FAILS(EFAULT, open(nowhere, O_RDONLY));
    FAILS(ENOENT, open("", O_RDONLY));
    memset(longest, 'n', sizeof longest);
    longest[256] = 0;
    FAILS(ENAMETOOLONG, open(longest, O_CREAT | O_RDWR, 0644));
    longest[255] = 0;
    close(DONE(open(longest, O_CREAT | O_RDWR, 0644)));
    GIVES(0, unlink(longest));
    for (unsigned i = 0; i < sizeof longest; i++) longest[i] = i % 2 ? '/' : '.';
    longest[PATH_MAX] = 0;
    FAILS(ENAMETOOLONG, stat(longest, &one));
    longest[PATH_MAX - 1] = 0;
    GIVES(0, stat(longest, &one));

    GIVES(0, symlink("f", "link"));
    FAILS(EEXIST, symlink("f", "link"));
    FAILS(ENOENT, symlink("", "empty"));
    GIVES(1, readlink("link", longest, sizeof longest));
    FAILS(EINVAL, readlink("f", longest, sizeof longest));
    FAILS(EINVAL, readlink("link", longest, 0));
    FAILS(ELOOP, open("link", O_RDONLY | O_NOFOLLOW));
    GIVES(0, stat("link", &one));
    HOLDS(S_ISREG(one.st_mode));
    GIVES(0, lstat("link", &one));
    HOLDS(S_ISLNK(one.st_mode) && one.st_size == 1);
    GIVES(0, symlink("b", "a"));
    GIVES(0, symlink("a", "b"));
    FAILS(ELOOP, open("a", O_RDONLY));
    FAILS(ELOOP, stat("a/x", &one));
    GIVES(0, symlink("made", "dangling"));
    FAILS(ENOENT, open("dangling", O_RDONLY));
    FAILS(EEXIST, open("dangling", O_CREAT | O_EXCL | O_RDWR, 0644));
    FAILS(EEXIST, mkdir("dangling", 0755));
    close(DONE(open("dangling", O_CREAT | O_RDWR, 0644)));
    GIVES(0, stat("made", &one));
    GIVES(0, symlink("d", "dlink"));
    FAILS(ENOTDIR, rmdir("dlink"));
    FAILS(ENOTDIR, rmdir("dlink/"));
    GIVES(0, stat("dlink/", &one));
    HOLDS(S_ISDIR(one.st_mode));

    GIVES(0, link("f", "hard"));
    GIVES(0, stat("f", &one));
    GIVES(0, stat("hard", &other));
    HOLDS(one.st_nlink == 2 && one.st_ino == other.st_ino);
    FAILS(EPERM, link("d", "dhard"));
    FAILS(EEXIST, link("f", "hard"));
    FAILS(ENOENT, link("none", "hard2"));
    FAILS(EXDEV, link("f", "/dev/shm/files-test"));
    GIVES(0, link("link", "hardlink"));
    GIVES(0, lstat("hardlink", &one));
    HOLDS(S_ISLNK(one.st_mode));

    GIVES(0, access("f", R_OK | W_OK));
    FAILS(EACCES, access("f", X_OK));
    FAILS(EINVAL, access("f", 9));
    FAILS(ENOENT, access("none", F_OK));
    FAILS(EBADF, faccessat(99, "f", F_OK, 0));
    int fd = DONE(open("f", O_RDONLY));
    FAILS(ENOTDIR, openat(fd, "f", O_RDONLY));
    FAILS(ENOTDIR, openat(fd, "f/g", O_RDONLY));
    close(fd);
    fd = DONE(open(".", O_RDONLY | O_DIRECTORY));
    close(DONE(openat(fd, "f", O_RDONLY)));
    GIVES(0, fstatat(fd, "", &one, AT_EMPTY_PATH));
    FAILS(ENOENT, fstatat(fd, "", &one, 0));
    FAILS(EINVAL, fstatat(fd, "f", &one, 0x40000));
    close(fd);
    FAILS(EBADF, openat(77, "f", O_RDONLY));
    for (const char *name = "a\0b\0f\0hard\0link\0dlink\0hardlink\0dangling\0made\0"; *name; name += strlen(name) + 1)
        GIVES(0, unlink(name));
    GIVES(0, rmdir("d"));
}

static int names_in(const char *path) {
    DIR *list = opendir(path);
    int count = 0;
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

static void directories(void) {
    char path[PATH_MAX], start[PATH_MAX];
    struct stat status;
    HOLDS(getcwd(start, sizeof start) != NULL);
    GIVES(0, mkdir("d", 0755));
    GIVES(0, mkdir("d/e", 0755));
    GIVES(0, stat("d", &status));
    HOLDS(status.st_nlink == 3);
    FAILS(ENOTEMPTY, rmdir("d"));
    FAILS(EINVAL, rmdir("d/."));
    FAILS(ENOTEMPTY, rmdir("d/e/.."));
    FAILS(EISDIR, unlink("d"));
    FAILS(EISDIR, unlink("d/"));
    FAILS(EBUSY, rmdir("/"));
    FAILS(EINVAL, rename("d", "d/e/f"));
    FAILS(EBUSY, rename(".", "other"));
    GIVES(0, mkdir("x", 0755));
    FAILS(ENOTEMPTY, rename("x", "d"));
    GIVES(0, rename("d", "x"));
    GIVES(0, stat("x/e", &status));
    close(file_with("f", "text"));
    FAILS(ENOTDIR, rename("x", "f"));
    FAILS(EISDIR, rename("f", "x"));
    FAILS(ENOENT, rename("none", "f"));
    FAILS(EXDEV, rename("f", "/dev/shm/f"));
    FAILS(EEXIST, syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "x", 1));
    GIVES(0, syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "x", 2));
    GIVES(0, stat("f/e", &status));
    GIVES(0, stat("x", &status));
    HOLDS(S_ISREG(status.st_mode));
    GIVES(0, rename("x", "x"));
    GIVES(0, chdir("f/e"));
    HOLDS(getcwd(path, sizeof path) && strncmp(path, start, strlen(start)) == 0);
    HOLDS(strcmp(path + strlen(start), "/f/e") == 0);
    FAILS(ERANGE, syscall(SYS_getcwd, path, 3));
    /* A directory that somebody stands in can be removed. */
    GIVES(0, rmdir("../e"));
    FAILS(ENOENT, syscall(SYS_getcwd, path, sizeof path));
    FAILS(ENOENT, open("new", O_CREAT | O_RDWR, 0644));
    FAILS(ENOENT, mkdir("new", 0755));
    GIVES(0, chdir(start));
    GIVES(0, rmdir("f"));
    GIVES(0, unlink("x"));
    FAILS(ENOTDIR, chdir("/dev/null"));

    /* More names than one call returns, removed while they are read. */
    GIVES(0, mkdir("many", 0755));
    for (int i = 0; i < 2000; i++) {
        snprintf(path, sizeof path, "many/file-with-a-longer-name-%04d", i);
        close(DONE(open(path, O_CREAT | O_WRONLY, 0644)));
    }
    GIVES(2002, names_in("many"));
    DIR *list = opendir("many");
    int removed = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.' && unlinkat(dirfd(list), entry->d_name, 0) == 0) removed++;
    closedir(list);
    GIVES(2000, removed);
    int fd = DONE(open("many", O_RDONLY));
    FAILS(EINVAL, syscall(SYS_getdents64, fd, path, 8));
    FAILS(EFAULT, syscall(SYS_getdents64, fd, nowhere, 4096));
    FAILS(EISDIR, read(fd, path, 1));
    FAILS(EBADF, write(fd, path, 1));
    close(fd);
    fd = DONE(open("/dev/null", O_RDONLY));
    FAILS(ENOTDIR, syscall(SYS_getdents64, fd, path, 4096));
    close(fd);
    GIVES(0, rmdir("many"));
}

static void contents(void) {
    char buffer[64] = "";
    struct stat status;
    int fd = file_with("f", "hello world");
    GIVES(0, lseek(fd, 0, SEEK_SET));
    GIVES(5, read(fd, buffer, 5));
    GIVES(5, lseek(fd, 0, SEEK_CUR));
    GIVES(11, lseek(fd, 0, SEEK_END));
    GIVES(0, read(fd, buffer, 5));
    FAILS(EINVAL, lseek(fd, -1, SEEK_SET));
    FAILS(EINVAL, lseek(fd, 0, 99));
    GIVES(20, lseek(fd, 20, SEEK_SET));
    GIVES(0, lseek(fd, 0, SEEK_DATA));
    GIVES(11, lseek(fd, 3, SEEK_HOLE));
    FAILS(ENXIO, lseek(fd, 11, SEEK_DATA));
    GIVES(5, pread(fd, buffer, 5, 6));
    HOLDS(memcmp(buffer, "world", 5) == 0);
    FAILS(EINVAL, pread(fd, buffer, 5, -1));
    GIVES(0, pread(fd, buffer, 5, 1000));
    GIVES(3, pwrite(fd, "end", 3, 30));
    GIVES(0, fstat(fd, &status));
    GIVES(33, status.st_size);
    GIVES(1, pread(fd, buffer, 1, 20));
    HOLDS(buffer[0] == 0);
    FAILS(EFAULT, pread(fd, nowhere, 5, 0));
    FAILS(EFAULT, write(fd, nowhere, 5));
    FAILS(EBADF, read(99, buffer, 1));
    FAILS(EBADF, read(-1, buffer, 1));
    GIVES(0, pread(fd, buffer, 0, 0));

    struct iovec parts[3] = {{"ab", 2}, {NULL, 0}, {"cde", 3}};
    GIVES(5, pwritev(fd, parts, 3, 0));
    volatile int many = -1;
    FAILS(EINVAL, writev(fd, parts, many));
    many = 1025;
    FAILS(EINVAL, writev(fd, parts, many));
    FAILS(EFAULT, writev(fd, nowhere, 1));
    struct iovec halves[2] = {{buffer, 3}, {buffer + 32, 8}};
    GIVES(11, preadv(fd, halves, 2, 0));
    HOLDS(memcmp(buffer, "abc", 3) == 0 && memcmp(buffer + 32, "de world", 8) == 0);
    struct iovec partly[2] = {{buffer, 3}, {nowhere, 8}};
    GIVES(3, preadv(fd, partly, 2, 0));

    GIVES(0, ftruncate(fd, 4));
    GIVES(4, lseek(fd, 0, SEEK_END));
    GIVES(0, ftruncate(fd, 100));
    GIVES(1, pread(fd, buffer, 1, 50));
    HOLDS(buffer[0] == 0);
    FAILS(EINVAL, ftruncate(fd, -1));
    FAILS(EINVAL, truncate("f", -1));
    FAILS(EISDIR, truncate(".", 0));
    GIVES(0, fallocate(fd, 0, 0, 200));
    GIVES(200, lseek(fd, 0, SEEK_END));
    FAILS(EINVAL, fallocate(fd, 0, 0, 0));
    FAILS(EINVAL, fallocate(fd, 0, -1, 10));
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10));
    GIVES(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2));
    GIVES(4, pread(fd, buffer, 4, 0));
    HOLDS(memcmp(buffer, "\0\0cd", 4) == 0);
    GIVES(0, ftruncate(fd, 1L << 40));
    GIVES(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1L << 40));
    GIVES(1, pwrite(fd, "d", 1, 1L << 39));
    GIVES(1L << 39, lseek(fd, 1L << 20, SEEK_DATA));
    GIVES((1L << 39) + 4096, lseek(fd, 1L << 39, SEEK_HOLE));
    GIVES(0, ftruncate(fd, 200));
    close(fd);

    fd = DONE(open("f", O_WRONLY | O_APPEND));
    FAILS(EBADF, read(fd, buffer, 1));
    GIVES(0, lseek(fd, 0, SEEK_SET));
    GIVES(3, write(fd, "end", 3));
    GIVES(203, lseek(fd, 0, SEEK_CUR));
    GIVES(3, pwrite(fd, "end", 3, 0));
    GIVES(206, lseek(fd, 0, SEEK_END));
    close(fd);
    fd = DONE(open("f", O_RDONLY));
    FAILS(EBADF, write(fd, "x", 1));
    FAILS(EINVAL, ftruncate(fd, 0));
    FAILS(EBADF, fallocate(fd, 0, 0, 10));
    /* Unlinked while open: the content stays, the name shows that it is gone. */
    GIVES(0, unlink("f"));
    GIVES(0, fstat(fd, &status));
    HOLDS(status.st_nlink == 0 && status.st_size == 206);
    GIVES(4, pread(fd, buffer, 4, 0));
    char name[64], target[PATH_MAX] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    DONE(readlink(name, target, sizeof target - 1));
    HOLDS(strstr(target, "/f (deleted)") != NULL);
    int again = DONE(open(name, O_RDONLY));
    GIVES(206, lseek(again, 0, SEEK_END));
    close(again);
    close(fd);

    /* One page of a file through a mapping, a write and a read. */
    fd = file_with("m", "0123456789");
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HOLDS(map != MAP_FAILED && memcmp(map, "0123456789", 11) == 0);
    map[0] = 'm';
    GIVES(1, pread(fd, buffer, 1, 0));
    HOLDS(buffer[0] == 'm');
    GIVES(1, pwrite(fd, "w", 1, 1));
    HOLDS(map[1] == 'w');
    char *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    own[2] = 'p';
    HOLDS(map[2] == '2');
    munmap(map, 4096);
    munmap(own, 4096);
    int out = DONE(open("copy", O_RDWR | O_CREAT, 0644));
    off_t offset = 2;
    GIVES(8, sendfile(out, fd, &offset, 100));
    GIVES(10, offset);
    loff_t from = 0, to = 8;
    GIVES(4, syscall(SYS_copy_file_range, fd, &from, out, &to, 4, 0));
    GIVES(12, lseek(out, 0, SEEK_END));
    close(out);
    close(fd);
    GIVES(0, unlink("m"));
    GIVES(0, unlink("copy"));

    fd = DONE(memfd_create("name", MFD_CLOEXEC));
    GIVES(4, write(fd, "data", 4));
    FAILS(EINVAL, memfd_create("name", 0x100));
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    DONE(readlink(name, target, sizeof target - 1));
    HOLDS(strncmp(target, "/memfd:name (deleted)", 21) == 0);
    close(fd);
}

static void attributes(void) {
    struct stat status;
    umask(027);
    close(DONE(open("f", O_CREAT | O_RDWR, 0666)));
    GIVES(0, stat("f", &status));
    GIVES(0640, status.st_mode & 07777);
    GIVES(0, mkdir("d", 0777));
    GIVES(0, stat("d", &status));
    GIVES(0750, status.st_mode & 07777);
    GIVES(027, umask(022));
    GIVES(0, chmod("f", 04755));
    GIVES(0, chown("f", 10, 20));
    GIVES(0, stat("f", &status));
    HOLDS((status.st_mode & 07777) == 0755 && status.st_uid == 10 && status.st_gid == 20);
    GIVES(0, chown("f", -1, 30));
    GIVES(0, stat("f", &status));
    HOLDS(status.st_uid == 10 && status.st_gid == 30);
    struct timespec times[2] = {{1000, 500}, {2000, UTIME_OMIT}};
    struct timespec modified = status.st_mtim;
    GIVES(0, utimensat(AT_FDCWD, "f", times, 0));
    GIVES(0, stat("f", &status));
    HOLDS(status.st_atim.tv_sec == 1000 && status.st_atim.tv_nsec == 500 && memcmp(&status.st_mtim, &modified, sizeof modified) == 0);
    times[0].tv_nsec = 1000000000;
    FAILS(EINVAL, utimensat(AT_FDCWD, "f", times, 0));
    FAILS(EFAULT, utimensat(AT_FDCWD, "f", nowhere, 0));
    struct statx wide;
    GIVES(0, statx(AT_FDCWD, "f", 0, STATX_ALL, &wide));
    HOLDS(wide.stx_uid == 10 && wide.stx_mode == (S_IFREG | 0755) && wide.stx_atime.tv_sec == 1000);
    FAILS(EINVAL, statx(AT_FDCWD, "f", 0, 0x80000000, &wide));
    struct statfs system;
    GIVES(0, statfs(".", &system));
    HOLDS(system.f_namelen == 255 && system.f_bsize == 4096);
    FAILS(EFAULT, stat("f", nowhere));
    FAILS(EFAULT, statfs(".", nowhere));
    GIVES(0, mkfifo("fifo", 0600));
    GIVES(0, stat("fifo", &status));
    HOLDS(S_ISFIFO(status.st_mode));
    GIVES(0, stat("/dev/null", &status));
    HOLDS(S_ISCHR(status.st_mode) && status.st_rdev == 0x103);
    /* Somebody else may not do all of this. */
    if (fork() == 0) {
        failures = 0;
        DONE(setgid(1000));
        DONE(setuid(1000));
        FAILS(EPERM, chmod("f", 0));
        FAILS(EPERM, chown("f", 1000, 1000));
        FAILS(EACCES, open("f", O_WRONLY));
        close(DONE(open("f", O_RDONLY)));
        FAILS(EACCES, open("d/x", O_CREAT | O_RDWR, 0644));
        FAILS(EACCES, unlink("f"));
        FAILS(EACCES, chdir("d"));
        _exit(failures != 0);
    }
    int result;
    wait(&result);
    GIVES(0, result);
    GIVES(0, unlink("fifo"));
    GIVES(0, unlink("f"));
    GIVES(0, rmdir("d"));
}

static volatile int broken_pipes;

static void on_broken_pipe(int number) {
    broken_pipes += number == SIGPIPE;
}

static void pipes(void) {
    int ends[2], available;
    char buffer[70000];
    memset(buffer, 'p', sizeof buffer);
    FAILS(EFAULT, pipe(nowhere));
    FAILS(EINVAL, pipe2(ends, O_CREAT));
    GIVES(0, pipe2(ends, O_NONBLOCK));
    FAILS(EAGAIN, read(ends[0], buffer, 1));
    FAILS(EBADF, read(ends[1], buffer, 1));
    FAILS(EBADF, write(ends[0], buffer, 1));
    FAILS(ESPIPE, lseek(ends[0], 0, SEEK_SET));
    FAILS(ESPIPE, pread(ends[0], buffer, 1, 0));
    GIVES(65536, fcntl(ends[0], F_GETPIPE_SZ));
    GIVES(65536, write(ends[1], buffer, sizeof buffer));
    FAILS(EAGAIN, write(ends[1], buffer, 1));
    FAILS(EBUSY, fcntl(ends[0], F_SETPIPE_SZ, 4096));
    GIVES(0, ioctl(ends[0], FIONREAD, &available));
    GIVES(65536, available);
    GIVES(4000, read(ends[0], buffer, 4000));
    /* Atomic writes go in whole or not at all. */
    FAILS(EAGAIN, write(ends[1], buffer, 4096));
    GIVES(61536, read(ends[0], buffer, sizeof buffer));
    GIVES(131072, fcntl(ends[0], F_SETPIPE_SZ, 100000));
    struct pollfd polled = {ends[0], POLLIN, 0};
    GIVES(0, poll(&polled, 1, 0));
    GIVES(3, write(ends[1], "abc", 3));
    GIVES(1, poll(&polled, 1, 0));
    GIVES(POLLIN, polled.revents);
    close(ends[1]);
    GIVES(1, poll(&polled, 1, 0));
    GIVES(POLLIN | POLLHUP, polled.revents);
    GIVES(3, read(ends[0], buffer, 10));
    GIVES(0, read(ends[0], buffer, 10));
    close(ends[0]);

    GIVES(0, pipe(ends));
    close(ends[0]);
    signal(SIGPIPE, on_broken_pipe);
    FAILS(EPIPE, write(ends[1], "x", 1));
    GIVES(1, broken_pipes);
    polled = (struct pollfd){ends[1], POLLOUT, 0};
    GIVES(1, poll(&polled, 1, 0));
    HOLDS(polled.revents & POLLERR);
    close(ends[1]);
    polled.fd = 99;
    GIVES(1, poll(&polled, 1, 100000));
    GIVES(POLLNVAL, polled.revents);
    polled.fd = -1;
    GIVES(0, poll(&polled, 1, 1));

    /* A megabyte through a blocking pipe to a child and back. */
    int there[2], back[2];
    GIVES(0, pipe(there));
    GIVES(0, pipe(back));
    pid_t child = fork();
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        for (long got; (got = read(there[0], buffer, 3000)) > 0;)
            for (long done = 0; done < got;) done += write(back[1], buffer + done, got - done);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    pid_t writer = fork();
    if (writer == 0) {
        for (int i = 0; i < 1024; i++) {
            memset(buffer, i, 1024);
            if (write(there[1], buffer, 1024) != 1024) _exit(1);
        }
        _exit(0);
    }
    close(there[1]);
    long total = 0, wrong = 0;
    for (long got; (got = read(back[0], buffer, sizeof buffer)) > 0; total += got)
        for (long i = 0; i < got; i++) wrong += (unsigned char)buffer[i] != ((total + i) / 1024) % 256;
    GIVES(1048576, total);
    GIVES(0, wrong);
    close(back[0]);
    int result;
    GIVES(child, waitpid(child, &result, 0));
    GIVES(writer, waitpid(writer, &result, 0));
    GIVES(0, result);

    GIVES(0, mkfifo("fifo", 0600));
    FAILS(ENXIO, open("fifo", O_WRONLY | O_NONBLOCK));
    int reader = DONE(open("fifo", O_RDONLY | O_NONBLOCK));
    GIVES(0, read(reader, buffer, 1));
    int fifo = DONE(open("fifo", O_WRONLY));
    FAILS(EAGAIN, read(reader, buffer, 1));
    GIVES(2, write(fifo, "hi", 2));
    GIVES(2, read(reader, buffer, 10));
    close(fifo);
    close(reader);
    if (fork() == 0) {
        fifo = open("fifo", O_WRONLY);
        _exit(write(fifo, "from child", 10) != 10);
    }
    reader = DONE(open("fifo", O_RDONLY));
    GIVES(10, read(reader, buffer, 100));
    close(reader);
    wait(&result);
    GIVES(0, result);
    GIVES(0, unlink("fifo"));

    GIVES(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    GIVES(4, write(ends[0], "ping", 4));
    GIVES(4, write(ends[1], "pong", 4));
    GIVES(4, read(ends[0], buffer, 10));
    HOLDS(memcmp(buffer, "pong", 4) == 0);
    GIVES(4, read(ends[1], buffer, 10));
    GIVES(0, shutdown(ends[0], SHUT_WR));
    GIVES(0, read(ends[1], buffer, 10));
    close(ends[0]);
    FAILS(EPIPE, write(ends[1], "x", 1));
    close(ends[1]);
    FAILS(EAFNOSUPPORT, socketpair(9999, SOCK_STREAM, 0, ends));
}

static void descriptors(void) {
    int fd = file_with("f", "0123456789");
    int copy = DONE(dup(fd));
    GIVES(3, lseek(fd, 3, SEEK_SET));
    GIVES(3, lseek(copy, 0, SEEK_CUR));
    GIVES(20, dup2(fd, 20));
    GIVES(20, dup2(20, 20));
    FAILS(EINVAL, dup3(fd, fd, 0));
    FAILS(EINVAL, dup3(fd, 21, 1));
    FAILS(EBADF, dup2(99, 3));
    FAILS(EBADF, dup2(fd, -1));
    FAILS(EBADF, dup2(fd, 10000000));
    GIVES(30, fcntl(fd, F_DUPFD, 30));
    GIVES(31, fcntl(fd, F_DUPFD_CLOEXEC, 30));
    FAILS(EINVAL, fcntl(fd, F_DUPFD, -1));
    GIVES(0, fcntl(30, F_GETFD));
    GIVES(FD_CLOEXEC, fcntl(31, F_GETFD));
    GIVES(0, fcntl(31, F_SETFD, 0));
    GIVES(0, fcntl(31, F_GETFD));
    GIVES(O_RDWR | 0100000, fcntl(fd, F_GETFL));
    GIVES(0, fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
    GIVES(O_RDWR | O_APPEND | O_NONBLOCK | 0100000, fcntl(copy, F_GETFL));
    FAILS(EINVAL, fcntl(fd, 12345));
    FAILS(EBADF, fcntl(99, F_GETFD));
    FAILS(EBADF, close(99));
    FAILS(EINVAL, syscall(SYS_close_range, 31, 30, 0));
    GIVES(0, syscall(SYS_close_range, 20, 40, 0));
    FAILS(EBADF, fcntl(30, F_GETFD));
    FAILS(ENOTTY, ioctl(fd, 0x5401, nowhere));
    FAILS(EBADF, ioctl(99, 0x5401, nowhere));
    int path = DONE(open("f", O_PATH));
    FAILS(EBADF, read(path, nowhere, 1));
    FAILS(EBADF, ioctl(path, 0x5401, nowhere));
    close(path);

    /* Locks of a process: another one sees them; closing any descriptor of the file drops them. */
    struct flock lock = {F_WRLCK, SEEK_SET, 2, 5, 0};
    GIVES(0, fcntl(fd, F_SETLK, &lock));
    GIVES(0, flock(fd, LOCK_EX));
    if (fork() == 0) {
        int other = DONE(open("f", O_RDWR));
        struct flock wanted = {F_RDLCK, SEEK_SET, 0, 3, 0};
        failures = 0;
        FAILS(EAGAIN, fcntl(other, F_SETLK, &wanted));
        GIVES(0, fcntl(other, F_GETLK, &wanted));
        HOLDS(wanted.l_type == F_WRLCK && wanted.l_start == 2 && wanted.l_len == 5 && wanted.l_pid == getppid());
        wanted = (struct flock){F_WRLCK, SEEK_SET, 7, 0, 0};
        GIVES(0, fcntl(other, F_SETLK, &wanted));
        FAILS(EAGAIN, flock(other, LOCK_SH | LOCK_NB));
        _exit(failures != 0);
    }
    int result;
    wait(&result);
    GIVES(0, result);
    close(copy);
    if (fork() == 0) {
        int other = DONE(open("f", O_RDWR));
        failures = 0;
        GIVES(0, fcntl(other, F_SETLK, &lock));
        _exit(failures != 0);
    }
    wait(&result);
    GIVES(0, result);
    /* A process that ends leaves no locks. */
    if (fork() == 0) {
        int other = DONE(open("f", O_RDWR));
        lock = (struct flock){F_WRLCK, SEEK_SET, 0, 0, 0};
        _exit(fcntl(other, F_SETLK, &lock) != 0);
    }
    wait(&result);
    GIVES(0, result);
    lock = (struct flock){F_RDLCK, SEEK_SET, 0, 0, 0};
    GIVES(0, fcntl(fd, F_SETLK, &lock));
    FAILS(EINVAL, flock(fd, 77));
    close(fd);
    GIVES(0, unlink("f"));
}

static void waiting(void) {
    int ends[2];
    struct epoll_event event = {EPOLLIN, {.u64 = 7}}, found[4];
    uint64_t number = 5;
    GIVES(0, pipe(ends));
    int counter = DONE(eventfd(0, EFD_NONBLOCK));
    FAILS(EAGAIN, read(counter, &number, 8));
    FAILS(EINVAL, read(counter, &number, 4));
    GIVES(8, write(counter, &number, 8));
    GIVES(8, write(counter, &number, 8));
    GIVES(8, read(counter, &number, 8));
    GIVES(10, number);
    FAILS(EINVAL, epoll_create1(1));
    FAILS(EINVAL, epoll_create(0));
    int epoll = DONE(epoll_create1(EPOLL_CLOEXEC));
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    FAILS(EEXIST, epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    FAILS(ENOENT, epoll_ctl(epoll, EPOLL_CTL_MOD, ends[1], &event));
    FAILS(ENOENT, epoll_ctl(epoll, EPOLL_CTL_DEL, ends[1], &event));
    FAILS(EINVAL, epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event));
    FAILS(EBADF, epoll_ctl(epoll, EPOLL_CTL_ADD, 99, &event));
    FAILS(EINVAL, epoll_ctl(ends[0], EPOLL_CTL_ADD, ends[1], &event));
    int file = file_with("f", "");
    FAILS(EPERM, epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
    close(file);
    GIVES(0, unlink("f"));
    FAILS(EINVAL, epoll_wait(epoll, found, 0, 0));
    GIVES(0, epoll_wait(epoll, found, 4, 0));
    GIVES(1, write(ends[1], "x", 1));
    GIVES(1, epoll_wait(epoll, found, 4, -1));
    GIVES(7, found[0].data.u64);
    GIVES(1, epoll_wait(epoll, found, 4, 0));
    event = (struct epoll_event){EPOLLIN | EPOLLET, {.u64 = 8}};
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
    GIVES(1, epoll_wait(epoll, found, 4, 0));
    GIVES(0, epoll_wait(epoll, found, 4, 0));
    GIVES(1, write(ends[1], "y", 1));
    GIVES(1, epoll_wait(epoll, found, 4, 0));
    event = (struct epoll_event){EPOLLIN | EPOLLONESHOT, {.u64 = 9}};
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
    GIVES(1, epoll_wait(epoll, found, 4, 0));
    GIVES(1, write(ends[1], "z", 1));
    GIVES(0, epoll_wait(epoll, found, 4, 0));
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
    GIVES(1, epoll_wait(epoll, found, 4, 0));
    /* An instance in an instance; a circle is refused. */
    int outer = DONE(epoll_create1(0));
    event = (struct epoll_event){EPOLLIN, {.u64 = 10}};
    GIVES(0, epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event));
    FAILS(ELOOP, epoll_ctl(epoll, EPOLL_CTL_ADD, outer, &event));
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event));
    GIVES(0, epoll_wait(outer, found, 4, 0));
    GIVES(8, write(counter, &number, 8));
    GIVES(1, epoll_wait(outer, found, 4, 0));
    /* Neither from below nor from above can a chain become long. */
    int chain[12], refused = 0;
    for (int i = 0; i < 12; i++) chain[i] = DONE(epoll_create1(0));
    for (int i = 0; i < 11; i++) refused += epoll_ctl(chain[i], EPOLL_CTL_ADD, chain[i + 1], &event) == -1;
    HOLDS(refused > 0);
    for (int i = 0; i < 12; i++) close(chain[i]);
    /* Closing a file takes it out. */
    close(counter);
    GIVES(0, epoll_wait(outer, found, 4, 0));
    GIVES(0, epoll_wait(epoll, found, 4, 0));
    /* A waiter is woken by another process. */
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        _exit(write(ends[1], "later", 5) != 5);
    }
    char buffer[16];
    GIVES(3, read(ends[0], buffer, 16));
    event = (struct epoll_event){EPOLLIN, {.u64 = 11}};
    GIVES(0, epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event));
    GIVES(1, epoll_wait(outer, found, 4, -1));
    GIVES(5, read(ends[0], buffer, 16));
    int result;
    wait(&result);
    GIVES(0, result);
    close(epoll);
    close(outer);

    fd_set reads, writes;
    struct timeval short_time = {0, 1000};
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(ends[0], &reads);
    FD_SET(ends[1], &writes);
    GIVES(1, select(ends[1] + 1, &reads, &writes, NULL, &short_time));
    HOLDS(FD_ISSET(ends[1], &writes) && !FD_ISSET(ends[0], &reads));
    FD_SET(99, &reads);
    FAILS(EBADF, select(100, &reads, NULL, NULL, &short_time));
    FAILS(EINVAL, select(-1, NULL, NULL, NULL, NULL));
    short_time = (struct timeval){0, 2000};
    GIVES(0, select(0, NULL, NULL, NULL, &short_time));
    close(ends[0]);
    close(ends[1]);

    int timer = DONE(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    struct itimerspec setting = {{0, 0}, {0, 3000000}};
    FAILS(EAGAIN, read(timer, &number, 8));
    GIVES(0, timerfd_settime(timer, 0, &setting, NULL));
    struct pollfd polled = {timer, POLLIN, 0};
    GIVES(1, poll(&polled, 1, 5000));
    GIVES(8, read(timer, &number, 8));
    GIVES(1, number);
    FAILS(EAGAIN, read(timer, &number, 8));
    setting.it_value.tv_nsec = 1000000000;
    FAILS(EINVAL, timerfd_settime(timer, 0, &setting, NULL));
    close(timer);
    FAILS(EINVAL, timerfd_create(99, 0));
}

static void devices(void) {
    char buffer[32] = "full";
    int fd = DONE(open("/dev/null", O_RDWR));
    GIVES(0, read(fd, buffer, 4));
    GIVES(4, write(fd, buffer, 4));
    GIVES(0, lseek(fd, 100, SEEK_SET));
    close(fd);
    fd = DONE(open("/dev/zero", O_RDWR));
    GIVES(32, read(fd, buffer, 32));
    HOLDS(buffer[0] == 0);
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    HOLDS(map != MAP_FAILED && map[100] == 0);
    munmap(map, 4096);
    close(fd);
    fd = DONE(open("/dev/full", O_RDWR));
    FAILS(ENOSPC, write(fd, buffer, 4));
    close(fd);
    fd = DONE(open("/dev/urandom", O_RDONLY));
    GIVES(32, read(fd, buffer, 32));
    int zeroes = 0;
    for (int i = 0; i < 32; i++) zeroes += buffer[i] == 0;
    HOLDS(zeroes < 8);
    close(fd);
    buffer[DONE(readlink("/proc/self", buffer, sizeof buffer - 1))] = 0;
    HOLDS(atoi(buffer) == getpid());
    char path[PATH_MAX] = "";
    DONE(readlink("/proc/self/exe", path, sizeof path - 1));
    HOLDS(path[0] == '/');
    FILE *maps = fopen("/proc/self/maps", "r");
    int stack = 0;
    while (maps && fgets(path, sizeof path, maps)) stack += strstr(path, "[stack]") != NULL;
    HOLDS(stack == 1);
    if (maps) fclose(maps);
    FAILS(ETXTBSY, open("/proc/self/exe", O_WRONLY));
    FAILS(ETXTBSY, truncate("/proc/self/exe", 0));
    FAILS(ENOENT, open("/proc/self/nothing", O_RDONLY));
    FAILS(ENOENT, open("/proc/999999", O_RDONLY));
    HOLDS(open("/proc/new", O_CREAT | O_RDWR, 0644) == -1);
    int status = DONE(open("/proc/self/oom_score_adj", O_RDWR));
    GIVES(3, write(status, "500", 3));
    GIVES(0, lseek(status, 0, SEEK_SET));
    GIVES(4, read(status, buffer, 32));
    HOLDS(memcmp(buffer, "500\n", 4) == 0);
    FAILS(EINVAL, write(status, "5000", 4));
    close(status);
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {{"paths", paths},         {"directories", directories}, {"contents", contents},
             {"attributes", attributes}, {"pipes", pipes},           {"descriptors", descriptors},
             {"waiting", waiting},     {"devices", devices}};

int main(int count, char **arguments) {
    char directory[] = "/tmp/files-XXXXXX";
    int known = count == 1;
    if (!mkdtemp(directory) || chmod(directory, 0755) || chdir(directory)) {
        perror(directory);
        return 1;
    }
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (count == 1 || strcmp(arguments[1], parts[i].name) == 0) {
            known = 1;
            int before = failures;
            parts[i].run();
            if (failures != before) fprintf(stderr, "%s: %d failures\n", parts[i].name, failures - before);
        }
    if (chdir("/") || rmdir(directory)) {
        perror("the test's directory is not empty");
        failures++;
    }
    if (!known) {
        fprintf(stderr, "there is no part called %s\n", arguments[1]);
        return 2;
    }
    if (failures) return 1;
    puts("ok");
    return 0;
}
