/*
 * shell.h - words of a command that is to be typed, as a shell takes them.
 *
 *   threads  any
 *   source   components/componentctl/doctor/shell.c
 */
#ifndef COMPONENTCTL_SHELL_H
#define COMPONENTCTL_SHELL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define SHELL_WORD_MAX (4 * PATH_MAX + 3) /* bytes with NUL, of a word of PATH_MAX with quotes alone */

/* A word that somebody else has chosen, in quotes unless it is plain.  Returns ret. */
const char *shell_word(const char *word, char ret[SHELL_WORD_MAX]);
/* "echo NUMBER > PATH", as root alone may. */
void shell_write(int64_t number, const char *path, char *ret, size_t size);
/* What is to stand before a command: "sudo " for others than root, where its first word is one that changes the system. */
const char *shell_sudo(const char *command);
/* "curl WORDS URL/WHAT", through the socket, unless that is "": a path, or @ and a name. */
void shell_curl(const char *words, const char *socket, const char *url, const char *what, char *ret, size_t size);

#endif
