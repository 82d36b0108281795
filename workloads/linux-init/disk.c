/* The disk that the host ordered: its driver loaded if it is a module, and its file system mounted at /disk.
 */
#include "peer.h"
#include <sys/mount.h>
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

void mount_disk(void)
{
	char access[8];
	if (!read_whole("/.ceasefire/disk", access, sizeof access))
		return;
	load_modules();
	struct stat disk;
	for (int waited = 0; stat("/dev/vda", &disk) != 0; waited++) {
		if (waited == PATIENCE_MILLISECONDS)
			give_up("the disk /dev/vda (has this kernel a driver for virtio block devices?)");
		usleep(1000);
	}
	mkdir("/disk", 0755);
	int read_only = strcmp(access, "ro") == 0;
	if (mount("/dev/vda", "/disk", "ext4", read_only ? MS_RDONLY : 0, NULL) != 0)
		give_up("mount the disk, as ext4");
}
