/* liburcu's read sections with its own consistency checks: inlined from its headers with DEBUG_RCU, which the library itself is built
 * without. A thread that reads without being registered, nests too deep, or leaves a section that it is not in, aborts the program. */
#define _LGPL_SOURCE
#define DEBUG_RCU
#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#if __has_include(<urcu/urcu-signal.h>)
#include <urcu/urcu-signal.h>
#endif
#include "checked.h"

#define CHECKED(FLAVOR)                                                                                                                        \
	static void FLAVOR##_enter(void)                                                                                                       \
	{                                                                                                                                      \
		_urcu_##FLAVOR##_read_lock();                                                                                                  \
	}                                                                                                                                      \
	static void FLAVOR##_leave(void)                                                                                                       \
	{                                                                                                                                      \
		_urcu_##FLAVOR##_read_unlock();                                                                                                \
	}                                                                                                                                      \
	const struct checked_sections checked_##FLAVOR = {FLAVOR##_enter, FLAVOR##_leave};

CHECKED(mb)
CHECKED(memb)
CHECKED(bp)
#if __has_include(<urcu/urcu-signal.h>)
CHECKED(signal)
#endif
