/*
 * arch_frames.h - x86-64: calls push the return address; the tables know signal frames and stubs.
 */
#include "../other/arch_frames.h"
