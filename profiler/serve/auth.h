/*
 * auth.h - who may ask: a name in Host, a token, an Origin.
 *
 *   threads  any: a reload is on another one than requests
 *   source   profiler/serve/auth.c
 */
#ifndef SERVE_AUTH_H
#define SERVE_AUTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <component/error.h>

#define SERVE_TOKEN_MAX 4096 /* bytes */

/* What protects the routes. */
struct auth {
	pthread_mutex_t lock; /* token, token_size, and serve.options.allowed_hosts: reload runs on another thread */
	char            token[SERVE_TOKEN_MAX];
	size_t          token_size; /* 0: no token is asked for */
	char            hostname[256];
};

int  auth_init(struct auth *a);
void auth_release(struct auth *a);
/* NULL path: no token.  warning gets a sentence or "". */
int  auth_token_read(struct auth *a, const char *path, char *warning, size_t warning_size, struct component_error *err);
/* used: what requests are held against meanwhile. */
void auth_token_swap(struct auth *used, struct auth *other);
bool auth_host_ok(const struct auth *a, const char *host, const char *const *allowed);
bool auth_token_ok(struct auth *a, const char *authorization, const char *query);
bool auth_origin_ok(const char *origin, const char *host);

#endif
