/* The thread check of include/threads.h, linked statically against musl. */
#include "../include/threads.h"
