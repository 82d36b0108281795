/* mremap beside another process that takes the same pages away, and readers who have both addresses in their CPUs' caches.
 *
 * An entry that moves carries its page's reference along. Whoever finds the page at its new address may drop that reference, flush
 * the new address only, and give the frame away, while a CPU still reaches it through the old one (CVE-2018-18281). Who may come to it there
 * in the middle of a move are those who ask nobody but the file: truncation, holes, reclaim, writeback. Each is a case here.
 * Every iteration goes
 *
 *     taker, another process        mover                         readers, one per further CPU, each bound to its own
 *     provides the pages        ->  waits                     ->  touch them where they are, say `touched`
 *     waits a random while          waits a random while          access them without end, at the old place until it faults, and
 *     takes them, says `taken`      moves them, says `moved`      then at the new one
 *     stores its canary into
 *     new pages, says `reused`                                ->  access everything once more, say `accessed`
 *
 * A load may find what the pages held, until they are taken; what there is afterwards; or a fault. The old place faults once
 * mremap has returned. Counted are: `reused`, accesses that found the canary, so that the frame had a new owner (D1); `stale`, those that saw
 * what had been taken or left before they began (D3); and `lost`, stores that were made and are not there (D2). `met` says in how many
 * iterations the two calls overlapped.
 *
 * Migration, which moves a page to another frame, is played by the cases on a disk: the page is taken out of all tables by way of its
 * object, its contents go elsewhere, and whoever comes next has them in another frame. What is stored between the two is lost.
 *
 * The pages lie three apart, on both sides of a table's border, so that their entries move; in the cases `*-tables` each lies in a table
 * of its own, and the tables move. Readers only load, except where a stale store can only be lost. In `reclaim-read-only` and `reclaim-in-place` the pages could not
 * be stored to, so that their flush may wait until their frames are needed (the mechanism `epochs`); in `-in-place` and `-beside-stores` nothing moves, and nobody else's flush
 * comes to their aid.
 */
#include "../include/faulting.h"
#include "../include/hand-over.h"
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

enum { PAGES = 2, CANARIES = 6, MANY_CANARIES = 48, MOST_READERS = 30, TABLE = 512 /* pages */ };
#define CANARY 0x0ca0a47ca0a47caL
#define DISK "/dev/vda"

static struct board {
	struct line provided, taking, taken, reused, moving, moved, touched[MOST_READERS], accessed[MOST_READERS];
	/* What was counted, and by whom. */
	struct count {
		long reused, stale, lost;
	} __attribute__((aligned(64))) counts[MOST_READERS];
	long met;
} *board;

static long iterations, spread;
static int readers, file, cpus[MOST_READERS + 2];
static int apart; /* pages between two that are looked at */
static char *places[2];
static char *canaries;

/* ---- what is taken, and how ---- */

#define LOOKED_AT 1 /* the word of each page that tells whose it is */

static off_t offset_of(int page)
{
	return (off_t)page * apart * (off_t)PAGE;
}

static size_t length(void)
{
	return (size_t)PAGES * apart * PAGE;
}

static void write_words(long value)
{
	for (int page = 0; page < PAGES; page++)
		check(pwrite(file, &value, sizeof value, offset_of(page) + LOOKED_AT * (off_t)sizeof value) == sizeof value);
}

static void open_memory(void)
{
	file = memfd_create("taken", MFD_CLOEXEC);
	check(file >= 0 && ftruncate(file, (off_t)length()) == 0);
}

static void provide_length(long iteration)
{
	check(ftruncate(file, (off_t)length()) == 0);
	write_words(iteration);
}
static void cut_off(void) { check(ftruncate(file, 0) == 0); }
static void punch(void) { check(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length()) == 0); }

/* A disk's words are what tests fill it with: their place, counted in words. */
static long word_of_disk(int page)
{
	return offset_of(page) / 8 + LOOKED_AT;
}

static void open_disk(void)
{
	uint64_t size;
	file = open(DISK, O_RDWR | O_CLOEXEC);
	if (file < 0) {
		printf("absent there is no disk " DISK " that can be written\n");
		exit(77);
	}
	check(ioctl(file, BLKGETSIZE64, &size) == 0);
	if (size < length())
		refuse(DISK " has %lu bytes, and %lu are needed", (unsigned long)size, (unsigned long)length());
}

static void provide_nothing(long iteration) { (void)iteration; }
/* Writes out what is dirty and takes everything back. (Linux leaves what is mapped.) */
static void take_back(void) { check(ioctl(file, BLKFLSBUF) == 0); }

/* What a page may hold once it was taken. */
enum after { NOTHING, ZERO, THE_SAME };

static const struct race {
	const char *name;
	int apart;
	void (*open)(void);
	void (*provide)(long iteration);
	void (*take)(void);
	enum after after;
	int rights;
	int stores; /* whether the readers count in the pages */
	int stays;  /* whether the mover lets the pages be */
} races[] = {
	{"truncate", 3, open_memory, provide_length, cut_off, NOTHING, PROT_READ | PROT_WRITE, 0, 0},
	{"truncate-tables", TABLE, open_memory, provide_length, cut_off, NOTHING, PROT_READ | PROT_WRITE, 0, 0},
	{"punch", 3, open_memory, write_words, punch, ZERO, PROT_READ | PROT_WRITE, 0, 0},
	{"punch-tables", TABLE, open_memory, write_words, punch, ZERO, PROT_READ | PROT_WRITE, 0, 0},
	{"reclaim", 3, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ | PROT_WRITE, 0, 0},
	{"reclaim-tables", TABLE, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ | PROT_WRITE, 0, 0},
	{"reclaim-read-only", 3, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ, 0, 0},
	{"reclaim-in-place", 3, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ, 0, 1},
	{"reclaim-beside-stores", 3, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ | PROT_WRITE, 1, 1},
	{"writeback", 3, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ | PROT_WRITE, 1, 0},
	{"writeback-tables", TABLE, open_disk, provide_nothing, take_back, THE_SAME, PROT_READ | PROT_WRITE, 1, 0},
};

static const struct race *race;

/* What the pages hold in an iteration, until they are taken. */
static long word_of(int page, long iteration)
{
	return race->open == open_disk ? word_of_disk(page) : iteration;
}

/* ---- the taker and the mover ---- */

static uint64_t chance;

static void wait_a_while(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	for (uint64_t turns = chance % (uint64_t)spread; turns > 0; turns--)
		relax();
}

/* What is read ahead of a disk is freed after the pages that are looked at, and handed out before them. */
static int canary_pages(void)
{
	return race->stays ? MANY_CANARIES : CANARIES;
}

/* New pages, of which some were the taken ones a moment ago: the taker's CPU hands out first what it got back last. */
static void reuse(void)
{
	for (int page = 0; page < canary_pages(); page++)
		((volatile long *)(canaries + page * PAGE))[LOOKED_AT] = CANARY;
}

static void take_always(void)
{
	chance = 0x9e3779b97f4a7c15;
	bind_to(cpus[1]);
	canaries = mmap(NULL, MANY_CANARIES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(canaries != MAP_FAILED);
	for (long iteration = 1; iteration <= iterations; iteration++) {
		race->provide(iteration);
		check(madvise(canaries, MANY_CANARIES * PAGE, MADV_DONTNEED) == 0);
		say(&board->provided, iteration);
		wait_for_each(board->touched, readers, iteration);
		wait_a_while();
		int before_its_end = said(&board->moved) != iteration;
		race->take();
		board->met += before_its_end && said(&board->moving) == iteration;
		say(&board->taken, iteration);
		reuse();
		say(&board->reused, iteration);
		wait_for_each(board->accessed, readers, iteration);
	}
}

/* Where the pages are in an iteration, before they have moved or after it. */
static char *place_of(long iteration, int is_new)
{
	return places[race->stays ? 0 : (iteration + !is_new) % 2];
}

static void move_always(void)
{
	chance = 0xd1b54a32d192ed03;
	bind_to(cpus[0]);
	for (long iteration = 1; iteration <= iterations; iteration++) {
		char *from = place_of(iteration, 0), *to = place_of(iteration, 1);
		wait_for_each(board->touched, readers, iteration);
		wait_a_while();
		say(&board->moving, iteration);
		check(from == to || mremap(from, length(), length(), MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		say(&board->moved, iteration);
		wait_for_each(board->accessed, readers, iteration);
	}
}

/* ---- the readers ---- */

/* What a reader knew before an access. */
struct known {
	long iteration;
	int begun, taken, moved, reused;
};

/* One reader. If it stores, it has a word of its own in each page, and knows what that must hold. */
struct reader {
	struct count *count;
	size_t own;
	long stored[PAGES], next;
};

/* Whether the pages are gone from where they were. */
static int has_left(const struct known *known)
{
	return known->moved && !race->stays;
}

static void note_seen(struct reader *reader, const struct known *known, int page, int is_new, long seen)
{
	int is_gone = known->taken && race->after != THE_SAME;
	int may_fault = known->begun && !race->stays && (!is_new || !known->moved || race->after == NOTHING);
	int may_be_held = seen == word_of(page, known->iteration) && !is_gone;
	int may_be_empty = seen == 0 && known->begun && race->after == ZERO;
	if (seen == CANARY)
		reader->count->reused++;
	else if (seen == FAULTED)
		reader->count->lost += !may_fault;
	else
		reader->count->stale += (!is_new && has_left(known)) || !(may_be_held || may_be_empty);
}

static volatile long *word_at(char *place, int page, size_t word)
{
	return (volatile long *)(place + offset_of(page)) + word;
}

/* Looks at one page, and counts in it; whether that faulted. */
static int access_page(struct reader *reader, const struct known *known, int page, int is_new)
{
	char *place = place_of(known->iteration, is_new);
	long seen = load(word_at(place, page, LOOKED_AT));
	note_seen(reader, known, page, is_new, seen);
	if (race->stores) {
		volatile long *own = word_at(place, page, reader->own);
		long counted = load(own);
		reader->count->lost += counted != FAULTED && counted != reader->stored[page];
		if (store(own, reader->next) != FAULTED) {
			reader->stored[page] = reader->next++;
			reader->count->stale += !is_new && has_left(known);
		}
	}
	return seen == FAULTED;
}

static void access_all(struct reader *reader, const struct known *known, int is_new)
{
	for (int page = 0; page < PAGES; page++)
		access_page(reader, known, page, is_new);
}

/* One page after the other, at the old place until it faults, and then at the new one, until both calls are over. */
static void access_until_over(struct reader *reader, struct known *known)
{
	int is_new = 0;
	known->begun = 1;
	for (int turn = 0; !known->moved || !known->reused; turn++) {
		known->taken = said(&board->taken) == known->iteration;
		known->moved = said(&board->moved) == known->iteration;
		known->reused = said(&board->reused) == known->iteration;
		is_new |= access_page(reader, known, turn % PAGES, is_new);
		relax();
	}
}

static void *read_always(void *argument)
{
	int self = (int)(long)argument;
	struct reader reader = {.count = &board->counts[self], .own = 8 * (self + 1), .next = 1};
	bind_to(cpus[self + 2]);
	for (int page = 0; page < PAGES; page++)
		reader.stored[page] = word_of_disk(page) - LOOKED_AT + (long)reader.own;
	for (long iteration = 1; iteration <= iterations; iteration++) {
		struct known known = {.iteration = iteration};
		wait_for(&board->provided, iteration);
		access_all(&reader, &known, 0);
		say(&board->touched[self], iteration);
		access_until_over(&reader, &known);
		access_all(&reader, &known, 0);
		access_all(&reader, &known, 1);
		say(&board->accessed[self], iteration);
	}
	/* The disk gets back what it had. */
	for (int page = 0; race->stores && page < PAGES; page++) {
		long before = word_of_disk(page) - LOOKED_AT + (long)reader.own;
		check(*word_at(place_of(iterations, 1), page, reader.own) == reader.stored[page]);
		*word_at(place_of(iterations, 1), page, reader.own) = before;
	}
	return NULL;
}

/* ---- all together ---- */

static void on_end_of_taker(int signal)
{
	int status;
	(void)signal;
	if (waitpid(-1, &status, WNOHANG) > 0 && status != 0)
		end_with(1, "the taker has ended with status %#x", (unsigned)status);
}

/* A place for the mapping that begins with a table, or ends one with its first half. */
static char *find_place(void)
{
	size_t table = TABLE * PAGE, room = length() + 2 * table;
	char *space = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(space != MAP_FAILED && munmap(space, room) == 0);
	uintptr_t border = ((uintptr_t)space + 2 * table - 1) / table * table;
	return (char *)(apart == TABLE ? border : border - length() / 2);
}

/* Both places keep their tables: beside them is something else. The second stays taken, without any right, until the first move replaces it:
 * nothing else may come to lie there meanwhile. */
static void find_places(void)
{
	for (int i = 0; i < 2; i++) {
		places[i] = find_place();
		size_t room = length() + 2 * PAGE;
		char *around = mmap(places[i] - PAGE, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		check(around == places[i] - PAGE);
		around[0] = around[room - 1] = 1;
		check(mprotect(places[i], length(), PROT_NONE) == 0);
	}
	check(mmap(places[0], length(), race->rights, MAP_SHARED | MAP_FIXED, file, 0) == places[0]);
}

static void find_race(const char *wanted)
{
	const struct race *end = races + sizeof races / sizeof *races;
	for (race = races; race < end; race++)
		if (strcmp(race->name, wanted) == 0)
			return;
	fputs("--case NAME is needed, one of:", stderr);
	for (race = races; race < end; race++)
		fprintf(stderr, " %s", race->name);
	fputs("\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"case", "iterations", "spread", NULL};
	only_options(argc, argv, options);
	iterations = number_option(argc, argv, "iterations", 1, 1000);
	spread = number_option(argc, argv, "spread", 1, 4);
	find_race(word_option(argc, argv, "case", ""));
	apart = race->apart;
	readers = allowed_cpus(cpus, MOST_READERS + 2) - 2;
	if (readers < 1)
		refuse("at least three CPUs are needed: for the taker, the mover and a reader");
	race->open();
	board = shared_memory(sizeof *board);
	signal(SIGCHLD, on_end_of_taker);
	pid_t taker = fork();
	check(taker >= 0);
	if (taker == 0) {
		take_always();
		_exit(0);
	}
	recover_from_faults();
	find_places();
	pthread_t threads[MOST_READERS];
	for (long i = 0; i < readers; i++)
		check(pthread_create(&threads[i], NULL, read_always, (void *)i) == 0);
	move_always();
	struct count all = {0};
	for (int i = 0; i < readers; i++) {
		check(pthread_join(threads[i], NULL) == 0);
		all.reused += board->counts[i].reused;
		all.stale += board->counts[i].stale;
		all.lost += board->counts[i].lost;
	}
	printf("case=%s readers=%d iterations=%ld met=%ld stale=%ld reused=%ld lost=%ld\n", race->name, readers, iterations, board->met, all.stale,
	       all.reused, all.lost);
	if (all.stale || all.reused || all.lost) {
		fflush(stdout);
		fail("%s: %ld accesses saw what was taken or left, %ld a page of somebody else, and %ld stores or pages were lost", race->name,
		     all.stale, all.reused, all.lost);
	}
	puts("ok");
	return 0;
}
