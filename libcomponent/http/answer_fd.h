/*
 * answer_fd.h - an answer to a descriptor: its body alone, for who has not asked by HTTP.
 *
 *     struct answer_fd to;
 *     answer_fd_init(&to, fd);      then &to.answer goes where any other answer would
 *
 * write waits for room, and returns 0 or what went wrong: -EPIPE, -ENOSPC, or -ETIMEDOUT when
 * an O_NONBLOCK descriptor takes nothing for ANSWER_STALL_SECONDS; another one is waited for without
 * an end.  begin, end and abort do nothing.
 *
 *   memory   the caller's, as fd is; nothing is to be freed
 *   threads  any one; SIGPIPE must be blocked there
 *   source   libcomponent/http/answer_fd.c
 */
#ifndef HTTP_ANSWER_FD_H
#define HTTP_ANSWER_FD_H

#include "answer.h"

struct answer_fd {
	struct answer answer; /* first */
	int           fd;
};

void answer_fd_init(struct answer_fd *a, int fd);

#endif
