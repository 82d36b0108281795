/* See the story in the header: every thread changes pages that only it has touched. */
#define PAGES_ARE_SHARED 0
#define CHANGE protect
#include "../include/touch-and-change.h"
