/*
 * frames.c - where the section begins, or ends, whose functions stacks leave out.
 *
 * Built twice, and linked before and behind all that have a part of that section.
 * Why not the linker's own __start_NAME: of a shared object, as the agent is one, it is
 * exported.
 */
#define TEXT(x)  #x
#define LABEL(x) TEXT(x)

__asm__(".section component_hooks_frames,\"ax\"\n"
	".globl " LABEL(FRAMES_LABEL) "\n"
	".hidden " LABEL(FRAMES_LABEL) "\n"
	LABEL(FRAMES_LABEL) ":\n"
	".previous\n");
