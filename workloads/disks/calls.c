/* Calls on disks, one after the other. Leaves /dev/vda in round 1. */
#include "disks.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define fails(call, error) check((errno = 0, (call) < 0) && errno == (error))

static void *volatile nowhere = (void *)1;
static unsigned char buffer[3 * 65536];

static void identities(void)
{
	struct stat status;
	for (int i = 0; i < 2; i++) {
		check(stat(i ? "/dev/vdb" : "/dev/vda", &status) == 0);
		check(S_ISBLK(status.st_mode) && status.st_size == 0);
		check(major(status.st_rdev) == 254 && minor(status.st_rdev) == (unsigned)(16 * i));
	}
	fails(open("/dev/vdz", O_RDONLY), ENOENT);
	check(mknod("/tmp/same", S_IFBLK | 0600, makedev(254, 16)) == 0);
	check(mknod("/tmp/none", S_IFBLK | 0600, makedev(254, 512)) == 0);
	fails(open("/tmp/none", O_RDONLY), ENXIO);
	uint64_t size, same;
	close(open_disk("/dev/vdb", O_RDONLY, &size));
	close(open_disk("/tmp/same", O_RDONLY, &same));
	check(size == same);
}

static void sizes(int disk, uint64_t size)
{
	unsigned long sectors;
	int sector = 0, read_only = -1;
	check(ioctl(disk, BLKGETSIZE, &sectors) == 0 && sectors == size / 512);
	check(ioctl(disk, BLKSSZGET, &sector) == 0 && sector == 512);
	check(ioctl(disk, BLKROGET, &read_only) == 0 && read_only == 0);
	check(ioctl(disk, BLKFLSBUF, 0) == 0);
	fails(ioctl(disk, BLKGETSIZE64, 1), EFAULT);
	fails(ioctl(disk, TIOCGPGRP, &sector), ENOTTY);
	check(lseek(disk, 0, SEEK_END) == (off_t)size);
	check(lseek(disk, -5, SEEK_CUR) == (off_t)size - 5);
	fails(lseek(disk, -1, SEEK_SET), EINVAL);
	fails(ftruncate(disk, 0), EINVAL);
	check(fsync(disk) == 0 && fdatasync(disk) == 0);
}

/* Reads all of a disk in pieces of that size. */
static void read_all(const char *path, size_t piece, int round)
{
	uint64_t size, at = 0;
	int disk = open_disk(path, O_RDONLY, &size);
	ssize_t got;
	while ((got = read(disk, buffer, piece)) > 0) {
		expect(buffer, (size_t)got, at, round, path);
		at += (uint64_t)got;
	}
	check(got == 0 && at == size);
	close(disk);
}

static void the_end(int disk, uint64_t size)
{
	check(pread(disk, buffer, 100, (off_t)size) == 0);
	check(pread(disk, buffer, 100, (off_t)size + 5000) == 0);
	check(pread(disk, buffer, 100, (off_t)size - 60) == 60);
	fails(pwrite(disk, buffer, 1, (off_t)size), ENOSPC);
	check(pwrite(disk, buffer, 0, (off_t)size) == 0);
	/* What fits is written. */
	check(pwrite(disk, buffer, 100, (off_t)size - 60) == 60);
	fails(pread(disk, nowhere, 100, 0), EFAULT);
	fails(pwrite(disk, nowhere, 100, 0), EFAULT);
}

/* Writes all of it in pieces that begin and end anywhere, with two openings in turn. */
static void write_all(int disk, uint64_t size, int round)
{
	uint64_t same;
	int other = open_disk("/dev/vda", O_RDWR, &same);
	size_t pieces[] = {1, 511, 4096, 5000, 512, 70000, 3, 4093, 131072, 40000};
	check(lseek(disk, 0, SEEK_SET) == 0);
	for (uint64_t at = 0, turn = 0; at < size; turn++) {
		size_t piece = pieces[turn % (sizeof pieces / sizeof *pieces)];
		if (piece > size - at)
			piece = (size_t)(size - at);
		fill(buffer, piece, at, round);
		if (turn % 2) {
			check(pwrite(other, buffer, piece, (off_t)at) == (ssize_t)piece);
			check(lseek(disk, (off_t)piece, SEEK_CUR) == (off_t)(at + piece));
		} else {
			check(write(disk, buffer, piece) == (ssize_t)piece);
		}
		memset(buffer, 0, piece);
		check(pread(turn % 2 ? disk : other, buffer, piece, (off_t)at) == (ssize_t)piece);
		expect(buffer, piece, at, round, "/dev/vda");
		at += piece;
	}
	check(fsync(other) == 0);
	close(other);
}

static void direct(uint64_t size, int round)
{
	uint64_t same;
	int disk = open_disk("/dev/vda", O_RDWR | O_DIRECT, &same);
	unsigned char *pages = aligned_alloc(PAGE, 4 * PAGE);
	check(same == size && pages);
	fails(pread(disk, pages, 100, 0), EINVAL);
	fails(pread(disk, pages, 4096, 100), EINVAL);
	fails(pwrite(disk, pages, 700, 512), EINVAL);
	fill(pages, 4 * PAGE, 1536, round);
	check(pwrite(disk, pages, 4 * PAGE, 1536) == (ssize_t)(4 * PAGE));
	memset(pages, 0, 4 * PAGE);
	check(pread(disk, pages, 4 * PAGE, 512) == (ssize_t)(4 * PAGE));
	expect(pages, 4 * PAGE, 512, round, "/dev/vda");
	free(pages);
	close(disk);
}

static void read_only(void)
{
	uint64_t size;
	int read_only = 0, disk = open_disk("/dev/vdb", O_RDONLY, &size);
	check(ioctl(disk, BLKROGET, &read_only) == 0 && read_only == 1);
	fails(pwrite(disk, buffer, 512, 0), EBADF);
	close(disk);
	disk = open_disk("/dev/vdb", O_RDWR, &size);
	fails(pwrite(disk, buffer, 512, 0), EPERM);
	fails(pwrite(disk, buffer, 512, (off_t)size), EPERM);
	check(fsync(disk) == 0);
	/* Nor may it be mapped so that it could be stored to, now or after an mprotect. */
	check(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, disk, 0) == MAP_FAILED && errno == EINVAL);
	check(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, disk, 0) == MAP_FAILED && errno == EINVAL);
	unsigned char *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, disk, 0);
	check(pages != MAP_FAILED);
	memset(pages, 255, PAGE);
	check(munmap(pages, PAGE) == 0);
	close(disk);
	disk = open_disk("/dev/vdb", O_RDONLY, &size);
	pages = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, disk, 0);
	check(pages != MAP_FAILED);
	expect(pages, PAGE, 0, 0, "the mapping of /dev/vdb");
	fails(mprotect(pages, PAGE, PROT_READ | PROT_WRITE), EACCES);
	check(munmap(pages, PAGE) == 0);
	close(disk);
}

void calls(void)
{
	uint64_t size;
	int disk = open_disk("/dev/vda", O_RDWR, &size);
	identities();
	sizes(disk, size);
	read_all("/dev/vda", 65536, 0);
	read_all("/dev/vda", 4097, 0);
	read_all("/dev/vdb", 10000, 0);
	the_end(disk, size);
	write_all(disk, size, 1);
	direct(size, 1);
	read_all("/dev/vda", 100000, 1);
	read_only();
	sync();
	close(disk);
}
