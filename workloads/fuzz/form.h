/* The text of a program (fuzz/src/text.rs says what it means), read into a table of steps. */
#ifndef FORM_H
#define FORM_H

#include "../include/workload.h"

#define WINDOW (0x1000200000UL - 12 * PAGE)
#define WINDOW_PAGES 2048UL
#define TABLE 512UL
#define BOUNDARY 12UL
#define NOWHERE 0x2000000000UL
#define ACTORS 6
#define SLOTS 8
#define MOST_STEPS 256

enum kind { MAP, UNMAP, PROTECT, REMAP, ADVISE, INCORE, LOAD, STORE, FORK, EXIT, WAIT, HOP };

static const char *const kinds[] = { "mmap", "munmap", "mprotect", "mremap", "madvise", "mincore",
				     "load", "store", "fork", "exit", "wait", "hop", NULL };

struct name {
	const char *name;
	uint64_t number;
};

static const struct name rights_names[] = { { "r", 1 }, { "w", 2 }, { "x", 4 }, { "s", 8 },
					    { "d", 0x1000000 }, { "u", 0x2000000 }, { NULL, 0 } };
static const struct name map_names[] = {
	{ "validate", 3 },	{ "shared", 1 },	{ "private", 2 },	 { "fixed", 0x10 },
	{ "32bit", 0x40 },	{ "growsdown", 0x100 }, { "denywrite", 0x800 },	 { "executable", 0x1000 },
	{ "locked", 0x2000 },	{ "noreserve", 0x4000 }, { "populate", 0x8000 }, { "nonblock", 0x10000 },
	{ "stack", 0x20000 },	{ "noreplace", 0x100000 }, { NULL, 0 }
};
static const struct name remap_names[] = { { "maymove", 1 }, { "fixed", 2 }, { "dontunmap", 4 }, { NULL, 0 } };
static const struct name advice_names[] = {
	{ "normal", 0 },	{ "random", 1 },      { "sequential", 2 },   { "willneed", 3 },	    { "dontneed", 4 },
	{ "free", 8 },		{ "remove", 9 },      { "dontfork", 10 },    { "dofork", 11 },	    { "mergeable", 12 },
	{ "unmergeable", 13 },	{ "hugepage", 14 },   { "nohugepage", 15 },  { "dontdump", 16 },    { "dodump", 17 },
	{ "wipeonfork", 18 },	{ "keeponfork", 19 }, { "cold", 20 },	     { "pageout", 21 },	    { "populate-read", 22 },
	{ "populate-write", 23 }, { "dontneed-locked", 24 }, { "collapse", 25 }, { NULL, 0 }
};

/* slot < 0: `offset` is the address; else bytes behind the start of the slot's block. */
struct address {
	int slot;
	uint64_t offset;
};

struct step {
	int round, actor;
	enum kind kind;
	struct address at, to;
	uint64_t length, second, rights, flags, offset, value;
	int slot;
};

struct program {
	char name[32];
	int threads, spins, rounds, steps;
	struct step step[MOST_STEPS];
};

static uint64_t whole(const char *text)
{
	char *end;
	errno = 0;
	uint64_t number = strtoull(text, &end, 0);
	if (errno || *end || end == text)
		refuse("the pack has '%s' where a number belongs", text);
	return number;
}

static uint64_t length_of(char *text)
{
	size_t last = strlen(text) - 1;
	if (text[last] != 'p')
		return whole(text);
	text[last] = 0;
	return whole(text) * PAGE;
}

static uint64_t bits_of(const struct name *names, char *text)
{
	uint64_t bits = 0;
	char *rest = NULL;
	if (strcmp(text, "-") == 0)
		return 0;
	for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		const struct name *name = names;
		while (name->name && strcmp(name->name, part) != 0)
			name++;
		bits |= name->name ? name->number : whole(part);
	}
	return bits;
}

static struct address address_of(char *text)
{
	struct address address = { -1, 0 };
	char *bytes = strchr(text, '+'), *page = strchr(text, '@');
	if (bytes) {
		*bytes++ = 0;
		address.offset = whole(bytes);
	}
	if (!page) {
		address.offset += whole(text);
		return address;
	}
	if (*text == '$') {
		*page = 0;
		address.slot = whole(text + 1);
		check(address.slot < SLOTS);
	} else {
		address.offset += WINDOW;
	}
	address.offset += whole(page + 1) * PAGE;
	return address;
}

/* Reads a step from its words; `words` has at least 8 of them, the last ones NULL. */
static void read_step(struct step *step, char **word)
{
	step->actor = whole(word[0]);
	int kind = 0;
	while (kinds[kind] && strcmp(kinds[kind], word[1]) != 0)
		kind++;
	static const int needed[] = { 6, 2, 3, 6, 3, 2, 1, 2, 1, 1, 1, 1 };
	if (!kinds[kind] || step->actor >= ACTORS || (needed[kind] && !word[1 + needed[kind]]))
		refuse("the pack has a step '%s' that makes no sense", word[1]);
	step->kind = kind;
	if (kind <= STORE)
		step->at = address_of(word[2]);
	if (kind <= INCORE)
		step->length = length_of(word[3]);
	switch (step->kind) {
	case MAP:
		step->rights = bits_of(rights_names, word[4]);
		step->flags = bits_of(map_names, word[5]);
		step->offset = whole(word[6]);
		step->slot = whole(word[7] + 1);
		break;
	case PROTECT:
		step->rights = bits_of(rights_names, word[4]);
		break;
	case REMAP:
		step->second = length_of(word[4]);
		step->flags = bits_of(remap_names, word[5]);
		step->to = address_of(word[6]);
		step->slot = whole(word[7] + 1);
		break;
	case ADVISE:
		step->flags = bits_of(advice_names, word[4]);
		break;
	case STORE:
		step->value = whole(word[3]);
		break;
	case FORK:
	case EXIT:
	case WAIT:
	case HOP:
		step->value = whole(word[2]);
		break;
	default:
		break;
	}
}

/* Reads the next program; says whether there was one. */
static int read_program(FILE *pack, struct program *program)
{
	static char line[512];
	int is_open = 0;
	while (fgets(line, sizeof line, pack)) {
		char *word[12] = { NULL }, *rest = NULL;
		int words = 0;
		line[strcspn(line, "#\n")] = 0;
		for (char *part = strtok_r(line, " ", &rest); part && words < 11; part = strtok_r(NULL, " ", &rest))
			word[words++] = part;
		if (!words)
			continue;
		if (strcmp(word[0], "end") == 0)
			return 1;
		if (!is_open) {
			if (words != 5 || strcmp(word[0], "program") != 0)
				refuse("the pack has '%s' where a program should begin", word[0]);
			memset(program, 0, sizeof *program);
			snprintf(program->name, sizeof program->name, "%s", word[1]);
			program->threads = whole(word[3]);
			program->spins = strcmp(word[4], "spin") == 0;
			is_open = 1;
			continue;
		}
		int joins = strcmp(word[0], "&") == 0;
		if (program->steps == MOST_STEPS || words < 3 + joins)
			refuse("program %s has a step that makes no sense, or too many", program->name);
		program->rounds += !joins;
		struct step *step = &program->step[program->steps++];
		step->round = program->rounds;
		read_step(step, word + joins);
	}
	if (is_open)
		refuse("the pack ends within a program");
	return 0;
}

#endif
