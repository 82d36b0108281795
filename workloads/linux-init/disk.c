/* The disks that the host ordered: their driver loaded if it is a module, and all of them waited for. */
#include "peer.h"
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PATIENCE_MILLISECONDS = 5000 };

/* In the order of the host's list, which is one of dependency. What the kernel has built in already is no mistake. */
static void load_modules(void)
{
	static char list[4096];
	size_t length = read_whole("/.ceasefire/modules", list, sizeof list);
	for (char *path = list; path < list + length; path += strlen(path) + 1) {
		int file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
			give_up(path);
		close(file);
	}
}

static void await_disk(const char *path)
{
	struct stat disk;
	for (int waited = 0; stat(path, &disk) != 0; waited++) {
		if (waited == PATIENCE_MILLISECONDS)
			give_up("a disk (has this kernel a driver for virtio block devices?)");
		usleep(1000);
	}
}

void prepare_disks(void)
{
	static char count[16];
	if (!read_whole("/.ceasefire/disks", count, sizeof count))
		return;
	load_modules();
	char path[] = "/dev/vda";
	for (int left = atoi(count); left > 0; left--, path[sizeof path - 2]++)
		await_disk(path);
}
