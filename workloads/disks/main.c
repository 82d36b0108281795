/* Block devices: what calls on them answer, and that every byte that was written is found again, by every path and by the host.
 *
 * /dev/vda may be written, /dev/vdb may only be read. At the end all of /dev/vda is of the round that the case says, and
 * /dev/vdb is as it was.
 */
#include "disks.h"
#include <linux/fs.h>
#include <sys/ioctl.h>

void fill(unsigned char *bytes, size_t length, uint64_t offset, int round)
{
	for (size_t i = 0; i < length; i++) {
		word one = content(offset + i, round);
		bytes[i] = ((unsigned char *)&one)[(offset + i) % 8];
	}
}

void expect(const unsigned char *bytes, size_t length, uint64_t offset, int round, const char *path)
{
	for (size_t i = 0; i < length; i++) {
		word one = content(offset + i, round);
		if (bytes[i] != ((unsigned char *)&one)[(offset + i) % 8])
			fail("byte %lu of %s is %d, which is not what round %d wrote", (unsigned long)(offset + i), path, bytes[i], round);
	}
}

int open_disk(const char *path, int flags, uint64_t *size)
{
	int disk = open(path, flags | O_CLOEXEC);
	if (disk < 0)
		fail("%s cannot be opened: %s", path, strerror(errno));
	check(ioctl(disk, BLKGETSIZE64, size) == 0);
	return disk;
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
    {"calls", calls},
    {"paths", paths},
    {"many", many},
    {"set", set},
    {"figures", figures},
    {"beside", beside},
};

int main(int argc, char **argv)
{
	const char *wanted = word_option(argc, argv, "case", "calls");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (strcmp(cases[i].name, wanted) == 0) {
			cases[i].run();
			puts("ok");
			return 0;
		}
	refuse("--case %s: there is no such case", wanted);
}
