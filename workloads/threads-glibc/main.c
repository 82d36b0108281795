/* The thread check of include/threads.h, linked statically against glibc. */
#include "../include/threads.h"
