/*
 * arch_recover.h - aarch64: frame pointers are not looked for there; recover.c says why.
 */
#include "../other/arch_recover.h"
