/* Pages of a disk that is larger than memory make way for what does not go away by itself: files in memory, by calls and by mappings, and bytes that
 * wait in a socket. Each is asked for while the disk has just streamed by, so that next to nothing is free.
 */
#include "disks.h"
#include <sys/mman.h>
#include <sys/socket.h>

#define LENGTH (1L << 20)
#define PASSES 3

static void stream_by(int disk, uint64_t size)
{
	static unsigned char bytes[16 * PAGE];
	for (uint64_t at = 0; at < size; at += sizeof bytes) {
		check(pread(disk, bytes, sizeof bytes, (off_t)at) > 0);
		expect(bytes, 8, at, 0, "/dev/vda");
	}
}

static void file_has_room(const unsigned char *bytes, unsigned char *again)
{
	int file = open("/tmp/beside", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(file >= 0);
	check(write(file, bytes, LENGTH) == LENGTH);
	check(pread(file, again, LENGTH, 0) == LENGTH);
	check(memcmp(bytes, again, LENGTH) == 0);
	check(posix_fallocate(file, LENGTH, LENGTH) == 0);
	check(close(file) == 0);
	check(unlink("/tmp/beside") == 0);
}

static void mapping_has_room(const unsigned char *bytes)
{
	int file = memfd_create("beside", MFD_CLOEXEC);
	check(file >= 0);
	check(ftruncate(file, LENGTH) == 0);
	unsigned char *mapped = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(mapped != MAP_FAILED);
	memcpy(mapped, bytes, LENGTH);
	check(memcmp(mapped, bytes, LENGTH) == 0);
	check(munmap(mapped, LENGTH) == 0);
	check(close(file) == 0);
}

static void socket_has_room(const unsigned char *bytes, unsigned char *again)
{
	int ends[2];
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	for (long done = 0; done < LENGTH; done += 65536) {
		check(send(ends[0], bytes + done, 65536, 0) == 65536);
		check(recv(ends[1], again + done, 65536, MSG_WAITALL) == 65536);
	}
	check(memcmp(bytes, again, LENGTH) == 0);
	check(close(ends[0]) == 0 && close(ends[1]) == 0);
}

void beside(void)
{
	static unsigned char bytes[LENGTH], again[LENGTH];
	uint64_t size;
	int disk = open_disk("/dev/vda", O_RDONLY, &size);
	for (int pass = 0; pass < PASSES; pass++) {
		fill(bytes, LENGTH, (uint64_t)pass * LENGTH, 7);
		memset(again, 0, LENGTH);
		stream_by(disk, size);
		file_has_room(bytes, again);
		stream_by(disk, size);
		mapping_has_room(bytes);
		memset(again, 0, LENGTH);
		stream_by(disk, size);
		socket_has_room(bytes, again);
	}
	check(close(disk) == 0);
}
