/* See the story in the header: one thread changes pages that all have read. */
#define PAGES_ARE_SHARED 1
#define CHANGE protect
#include "../include/touch-and-change.h"
