/*
 * fetch.c - one answer of a profiling server, or of several at once, by libcurl.
 *
 * What a stranger would get wrong:
 *  - no redirect is followed and no proxy asked: the token is for this server, and localhost is not the proxy's.
 *  - an answer without a length that ends early looks whole to nobody: it is marked, and who reads it must see
 *    whether it is a whole profile.
 *  - the server's own sentence says best what was wrong, which kinds there are, whom it lets in: it is passed on.
 *
 * Tests: tests/componentctl/profile.t, tests/componentctl/ends_meanwhile.t
 */
#include <config.h>

#include "fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "bar.h"
#include "checkpoints.h"
#include "text.h"

#define CONNECT_SECONDS 10  /* until somebody is there */
#define SILENCE_SECONDS 120 /* between two pieces, besides what is measured: large programs take long to name */
#define TOKEN_MAX       4096 /* bytes with NUL */
#define SENTENCE_MAX    600  /* bytes of what a server says */
#define LOOK_MS         200  /* at the bar, while nothing comes */
#define DROP_LEAST      ((size_t)1 << 20) /* bytes: less is not worth unpacking what has come */

struct request {
	CURL                *curl;
	const struct target *target;
	struct fetched      *fetched;
	int64_t              seconds; /* of the window */
	double               passed;  /* seconds, until it ended */
	CURLcode             code;
	bool                 too_large;
	size_t               most;    /* bytes, from which on older checkpoints are dropped */
	char                 sentence[CURL_ERROR_SIZE];
};

int
fetch_add(void *fetched, const void *data, size_t size)
{
	struct fetched *f = fetched;
	size_t          room = 64 << 10;
	unsigned char  *more;

	if (size > FETCH_BYTES_MAX - f->size)
		return -EFBIG;
	while (room < f->size + size)
		room *= 2;
	more = realloc(f->data, room);
	if (!more)
		return -ENOMEM;
	memcpy(more + f->size, data, size);
	f->data = more;
	f->size += size;
	return 0;
}

void
fetch_many_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Of an answer with checkpoints only the last whole one is kept, with what has come behind it.  How much that is. */
static size_t
drop_older(struct fetched *f)
{
	size_t size, at = checkpoints_last(f->data, f->size, &size);

	memmove(f->data, f->data + at, f->size - at);
	f->size -= at;
	return f->size - size;
}

static size_t
take(char *data, size_t one, size_t size, void *arg)
{
	struct request *r = arg;
	int             error;

	(void)one;
	if (r->fetched->has_checkpoints && r->fetched->size > r->most) {
		drop_older(r->fetched);
		r->most = 2 * r->fetched->size + DROP_LEAST;
	}
	error = fetch_add(r->fetched, data, size);
	r->too_large = error == -EFBIG;
	return error < 0 ? 0 : size;
}

static size_t
take_header(char *line, size_t one, size_t size, void *arg)
{
	static const char wanted[] = "X-Component-Checkpoints:";
	struct request   *r = arg;

	(void)one;
	if (size >= sizeof(wanted) && !strncasecmp(line, wanted, sizeof(wanted) - 1))
		r->fetched->has_checkpoints = true;
	return size;
}

/* One line, without control characters and blanks at its end. */
static void
sentence_of(const struct fetched *f, struct text *ret)
{
	char   line[SENTENCE_MAX + 1];
	size_t n = f->size < SENTENCE_MAX ? f->size : SENTENCE_MAX;

	if (n)
		memcpy(line, f->data, n);
	line[n] = '\0';
	for (char *c = line; *c; c++)
		if (isspace((unsigned char)*c))
			*c = ' ';
	for (n = strlen(line); n && line[n - 1] == ' ';)
		line[--n] = '\0';
	text_add_visible(ret, line, SENTENCE_MAX);
}

static int
answered(struct request *r, long status, struct component_error *err)
{
	struct text said = TEXT_INIT;
	char       *elsewhere = NULL;

	if (status >= 200 && status < 300)
		return 0;
	curl_easy_getinfo(r->curl, CURLINFO_REDIRECT_URL, &elsewhere);
	if (elsewhere) {
		text_add_visible(&said, elsewhere, SENTENCE_MAX);
		component_error_set(err, "%s: is at another address, which is not followed; if you trust it, write '%s'",
			r->target->word, text_string(&said));
	} else {
		sentence_of(r->fetched, &said);
		component_error_set(err, "%s: the server says: %s (HTTP %ld)%s", r->target->word,
			said.size ? said.data : "nothing", status,
			status == 401 ? "; write --token-file=FILE" : "");
	}
	text_release(&said);
	return status == 401 || status == 403 ? -EACCES : status == 404 ? -ENOENT : -EREMOTEIO;
}

static int
went_away(struct request *r, struct component_error *err)
{
	r->fetched->is_cut = true;
	component_error_set(err, "%s: the server went away after %.1f s, %zu bytes into its answer; is the program still "
		"running?", r->target->word, r->passed, r->fetched->size);
	return -EPIPE;
}

static int
failed(struct request *r, CURLcode code, struct component_error *err)
{
	const char *why = *r->sentence ? r->sentence : curl_easy_strerror(code);

	switch (code) {
	case CURLE_COULDNT_CONNECT:
		component_error_set(err, "%s: nobody listens there (%s); is the program running, with --enable-pprof, and "
			"is this its --profiling-bind-address?", r->target->word, why);
		return -ECONNREFUSED;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return went_away(r, err);
	case CURLE_OPERATION_TIMEDOUT:
		component_error_set(err, "%s: no answer (%s); does something else than a profiling server listen there?",
			r->target->word, why);
		return -ETIMEDOUT;
	case CURLE_WRITE_ERROR:
		if (!r->too_large)
			return -ENOMEM;
		component_error_set(err, "%s: sends more than %zu MiB; ask for fewer --seconds", r->target->word,
			FETCH_BYTES_MAX >> 20);
		return -EFBIG;
	case CURLE_UNSUPPORTED_PROTOCOL:
		component_error_set(err, "%s: this libcurl does not know that protocol; write http://", r->target->word);
		return -EPROTONOSUPPORT;
	default:
		component_error_set(err, "%s: %s", r->target->word, why);
		return -EIO;
	}
}

static int
read_token(const char *path, char token[TOKEN_MAX], struct component_error *err)
{
	FILE *f = fopen(path, "re");
	char *line = f ? fgets(token, TOKEN_MAX, f) : NULL;
	int   r = f ? 0 : -errno;

	if (r < 0)
		component_error_set(err, "--token-file '%s': %s", path, strerror(-r));
	if (f)
		fclose(f);
	if (r < 0)
		return r;
	if (line)
		line[strcspn(line, " \t\r\n")] = '\0';
	if (!line || !*line) {
		component_error_set(err, "--token-file '%s': there is no token in its first line; write the server's there", path);
		return -EINVAL;
	}
	for (const char *c = line; *c; c++)
		if (!isgraph((unsigned char)*c)) {
			component_error_set(err, "--token-file '%s': the token has a character that none has", path);
			return -EINVAL;
		}
	return 0;
}

/* ret NULL: none is given. */
static int
token_header(const char *path, struct curl_slist **ret, struct component_error *err)
{
	char token[TOKEN_MAX], header[TOKEN_MAX + 32];
	int  error;

	if (!path || !*path)
		return 0;
	error = read_token(path, token, err);
	if (error < 0)
		return error;
	snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	*ret = curl_slist_append(NULL, header);
	explicit_bzero(token, sizeof(token));
	explicit_bzero(header, sizeof(header));
	return *ret ? 0 : -ENOMEM;
}

static void
set_address(struct request *r, const char *url)
{
	const char *path = r->target->socket;

	curl_easy_setopt(r->curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	if (*path == '@')
		curl_easy_setopt(r->curl, CURLOPT_ABSTRACT_UNIX_SOCKET, path + 1);
	else if (*path)
		curl_easy_setopt(r->curl, CURLOPT_UNIX_SOCKET_PATH, path);
	curl_easy_setopt(r->curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(r->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(r->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(r->curl, CURLOPT_USERAGENT, "componentctl/" PACKAGE_VERSION);
}

static void
set_limits(struct request *r)
{
	curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, r->sentence);
	curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(r->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(r->curl, CURLOPT_LOW_SPEED_TIME, (long)(r->seconds + SILENCE_SECONDS));
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, r);
}

/* However it ended, the last one is there; a part of another says that it was cut off, which nothing else tells where a proxy
 * is between us. */
static int
checkpoints_ended(struct request *r, struct component_error *err)
{
	size_t part = drop_older(r->fetched);

	r->fetched->size -= part;
	if (r->code == CURLE_OK && !part)
		return 0;
	if (r->too_large)
		failed(r, r->code, err);
	else
		went_away(r, err);
	return -EPIPE;
}

static int
ended(struct request *r, struct component_error *err)
{
	long status = 0;

	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	/* What came of an error's text is said as well as can be. */
	if (status >= 300)
		return answered(r, status, err);
	if (r->fetched->has_checkpoints && r->fetched->size)
		return checkpoints_ended(r, err);
	return r->code == CURLE_OK ? answered(r, status, err) : failed(r, r->code, err);
}

/* Until all have ended. */
static void
perform(CURLM *multi, struct request *all, size_t count, struct bar *bar)
{
	int  running, left;
	bool comes = false;

	do {
		CURLMsg *m;

		if (curl_multi_perform(multi, &running) != CURLM_OK)
			return;
		while ((m = curl_multi_info_read(multi, &left)))
			for (size_t i = 0; i < count && m->msg == CURLMSG_DONE; i++)
				if (all[i].curl == m->easy_handle) {
					all[i].code = m->data.result;
					all[i].passed = bar_passed(bar);
				}
		for (size_t i = 0; i < count; i++)
			comes |= all[i].fetched->size > 0 && !all[i].fetched->has_checkpoints;
		bar_show(bar, comes ? ", comes" : "");
	} while (running && curl_multi_poll(multi, NULL, 0, LOOK_MS, NULL) == CURLM_OK);
}

/* A kind's name as a part of a path: slashes stay, as Go's server takes names with them. */
static void
add_escaped(struct text *url, const char *what)
{
	for (; *what; what++)
		if (isalnum((unsigned char)*what) || strchr("-._~/", *what))
			text_add_bytes(url, what, 1);
		else
			text_add(url, "%%%02X", (unsigned char)*what);
}

static int
request_begin(CURLM *multi, struct request *r, struct fetching *f, const char *what, const char *query, struct curl_slist *headers)
{
	struct text url = TEXT_INIT;

	r->curl = curl_easy_init();
	r->target = f->target;
	r->fetched = &f->fetched;
	r->code = CURLE_FAILED_INIT;
	text_add(&url, "%s/", f->target->url);
	add_escaped(&url, what);
	if (*query)
		text_add(&url, "?%s", query);
	if (r->curl && !url.failed) {
		set_address(r, url.data);
		set_limits(r);
		curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, headers);
		f->result = curl_multi_add_handle(multi, r->curl) == CURLM_OK ? 0 : -ENOMEM;
	} else {
		f->result = -ENOMEM;
	}
	text_release(&url);
	return f->result;
}

/* Whether it can be asked. */
static bool
goes_on(struct fetching *f)
{
	if (!target_is_stopped(f->target))
		return true;
	component_error_set(&f->err, "%s: it is stopped, and answers nobody until it goes on; 'kill -CONT %d' lets it",
		f->target->word, (int)f->target->process);
	f->result = -EBUSY;
	return false;
}

int
fetch_each(struct fetching *all, size_t count, const char *what, const char *query, int64_t seconds, bool shows_bar,
	const char *token, struct component_error *err)
{
	struct request    *requests = calloc(count, sizeof(*requests));
	struct curl_slist *headers = NULL;
	CURLM             *multi = curl_multi_init();
	struct bar         bar;
	int                r = requests && multi ? token_header(token, &headers, err) : -ENOMEM;

	for (size_t i = 0; i < count && !r; i++) {
		requests[i].fetched = &all[i].fetched;
		requests[i].seconds = seconds;
		if (!all[i].result && goes_on(&all[i]) && request_begin(multi, &requests[i], &all[i], what, query, headers) < 0)
			r = -ENOMEM;
	}
	bar_begin(&bar, r || !shows_bar ? 0 : seconds);
	if (!r)
		perform(multi, requests, count, &bar);
	bar_end(&bar);
	for (size_t i = 0; i < count && requests; i++) {
		if (!requests[i].curl)
			continue;
		if (!r)
			all[i].result = ended(&requests[i], &all[i].err);
		curl_multi_remove_handle(multi, requests[i].curl);
		curl_easy_cleanup(requests[i].curl);
	}
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	free(requests);
	return r;
}

int
fetch(const struct target *t, const char *what, const char *query, int64_t seconds, bool shows_bar, const char *token,
	struct fetched *ret, struct component_error *err)
{
	struct fetching one = { .target = t };
	int             r = fetch_each(&one, 1, what, query, seconds, shows_bar, token, err);

	*ret = one.fetched;
	if (!r && one.result < 0)
		*err = one.err;
	return r < 0 ? r : one.result;
}

void
fetch_release(struct fetched *f)
{
	free(f->data);
	*f = (struct fetched){ .data = NULL };
}
