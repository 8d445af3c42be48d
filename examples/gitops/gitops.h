/*
 * gitops.h - what the three controllers share: files that are never half-written,
 * paths that never leave their root, and small documents of "key: value" lines.
 *
 * Uses <component/...> and libc, as the controllers do.  All functions return
 * 0 or a negative errno and may be called by several threads at once.
 *
 *     applications/dev/shop.yaml     people write it: name, source, target, prune,
 *                                    interval
 *     sources/...                    the files as they should be
 *     operations/dev/shop.operation  backend-controller: the same with a hash for
 *                                    each file
 *     targets/...                    the files as they are; cluster-agent
 *     managed/dev/shop.managed       cluster-agent: what it has put into targets/
 *     status/dev/shop.application    backend-controller: accepted, or why not
 *     status/dev/shop.sync           cluster-agent: in sync since when, or why not
 *     status/dev/shop.promotion      appstudio-controller
 */
#ifndef GITOPS_H
#define GITOPS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/controller.h>

#define GITOPS_HASH_SIZE 65 /* SHA-256 in hex, and a NUL */
#define GITOPS_PATH_MAX 1024 /* bytes of a relative path, NUL included */
#define GITOPS_NAME_SIZE 256 /* bytes of a name in it, NUL included */
#define GITOPS_DOCUMENT_MAX (64 << 20) /* bytes; 100,000 files of an operation fit */
#define GITOPS_FILES_MAX 100000 /* of one application */
#define GITOPS_FIELDS_MAX 16

/* ---- sha256.c ---- */

struct gitops_hash {
	uint32_t      state[8];
	uint64_t      bytes;
	unsigned char block[64];
};

void gitops_hash_begin(struct gitops_hash *h);
void gitops_hash_add(struct gitops_hash *h, const void *data, size_t size);
void gitops_hash_end(struct gitops_hash *h, char ret_hex[GITOPS_HASH_SIZE]);

/* ---- root.c: paths are relative to root, and no symbolic link is followed ---- */

struct gitops_file {
	char    *path;
	unsigned mode; /* permission bits */
	uint64_t size;
	char     hash[GITOPS_HASH_SIZE];
	bool     intended; /* in managed/: about to be written, perhaps never was */
};

/* Sorted by path. */
struct gitops_files {
	struct gitops_file *items;
	size_t count, room;
};

/* Relative, without "..", ".", empty names and those of files being written.  Any other
 * bytes are a name: blanks, newlines, whatever the encoding. */
int  gitops_path_check(const char *path, struct component_error *err);
/* "a/b" and "c" make "a/b/c". */
int  gitops_path_join(char ret[GITOPS_PATH_MAX], const char *path, const char *below, struct component_error *err);
/* Is path prefix itself or below it? */
bool gitops_path_below(const char *path, const char *prefix);
/* root/path as a descriptor; "" is root itself. */
int  gitops_open_dir(const char *root, const char *path, bool create);
/* Size, mode and hash of a plain file; -ELOOP for a link, -EINVAL for other kinds.  As all
 * that reads whole files or trees: -ECANCELED when the program stops and it takes long. */
int  gitops_file_look(const char *root, const char *path, struct gitops_file *ret);
/* Copies a file under a temporary name, checks that it is WANT, then renames it;
 * -ESTALE when the source holds something else, and nothing has changed. */
int  gitops_file_copy(const char *from, const char *path, const char *to, const char *to_path,
	const struct gitops_file *want, struct component_error *err);
/* Replaces a file as a whole; does nothing if that is what it holds.  SYNC: also for
 * a power failure; what can be found out again does without. */
int  gitops_file_write(const char *root, const char *path, const char *text, bool sync, struct component_error *err);
/* All of a file and a NUL; the caller frees it.  -ENOENT: the root is there, the
 * file is not; a root that is not there is -ENOTDIR. */
int  gitops_file_read(const char *root, const char *path, size_t max, char **ret, struct component_error *err);
/* Removes a file and parents that are empty now. */
int  gitops_file_remove(const char *root, const char *path);
/* A name for what is being written, which no other process and no other thread makes. */
void gitops_partial_name(char ret[GITOPS_NAME_SIZE]);
bool gitops_is_partial(const char *path);
/* Whose these names are; once, before any is made. */
void gitops_partials_own(const char *program);

/* ---- tree.c ---- */

/* All plain files below path; other kinds are an error that names them. */
int  gitops_tree_look(const char *root, const char *path, struct gitops_files *ret, struct component_error *err);
/* Their paths alone, without reading them.  What else is there, goes meanwhile or may not be read is left out. */
int  gitops_tree_list(const char *root, const char *path, struct gitops_files *ret, struct component_error *err);
/* Looks at WANT's files below path: sets wrong[i] for each that differs. */
int  gitops_tree_compare(const char *root, const char *path, const struct gitops_files *want, bool *wrong,
	size_t *ret_count, struct component_error *err);
void gitops_tree_remove(const char *root, const char *path);
/* Removes all that is half-written by us below root: who has the root's lock knows that
 * nobody writes it. */
void gitops_partials_sweep(const char *root);

/* ---- stop.c ---- */

/* For spec.stop: work that takes long gives up from now on. */
void gitops_stop(struct component *c);
/* Before BYTES are read, or a name is looked at.  false: give up with -ECANCELED. */
bool gitops_go_on(size_t bytes);

int  gitops_files_add(struct gitops_files *f, const struct gitops_file *file);
void gitops_files_sort(struct gitops_files *f);
struct gitops_file *gitops_files_find(const struct gitops_files *f, const char *path);
void gitops_files_revision(const struct gitops_files *f, char ret_hex[GITOPS_HASH_SIZE]);
void gitops_files_free(struct gitops_files *f);

/* ---- document.c ---- */

struct gitops_field {
	const char *key, *value;
	unsigned    line;
};

/* "key: value" lines as in YAML, then perhaps "files:" and a list. */
struct gitops_document {
	char               *text;
	struct gitops_field fields[GITOPS_FIELDS_MAX];
	size_t              count;
	unsigned            lines;
	struct gitops_files files;
};

/* Takes the text over.  Faults are "line N: what, and what to write instead". */
int  gitops_document_parse(char *text, struct gitops_document *ret, struct component_error *err);
int  gitops_document_read(const char *root, const char *path, struct gitops_document *ret, struct component_error *err);
const char *gitops_document_get(const struct gitops_document *d, const char *key); /* "" if it is not there */
void gitops_document_free(struct gitops_document *d);
/* Key, value pairs with NULL at the end, and files; values are quoted where needed. */
int  gitops_document_write(const char *root, const char *path, bool sync, const struct gitops_files *files,
	struct component_error *err, ...) __attribute__((sentinel));

/* An application file; strings live in document. */
struct gitops_application {
	struct gitops_document document;
	const char *name, *source, *target, *interval;
	bool        prune;
	int64_t     interval_ns;
};

/* "30s", "5m", "1h": whole numbers of at least a second; 0 if it is something else. */
int64_t gitops_interval_ns(const char *text);
/* KEY is its path below applications/: "dev/shop.yaml". */
int  gitops_application_read(const char *root, const char *key, struct gitops_application *ret, struct component_error *err);
void gitops_application_free(struct gitops_application *a);

/* "dev/shop.yaml", ".yaml", ".sync" -> "dev/shop.sync"; false: another suffix. */
bool gitops_suffix(char ret_path[GITOPS_PATH_MAX], const char *key, const char *from, const char *to);
int64_t gitops_now_ms(void); /* since 1970 */

/* ---- copies.c ---- */

/* Copies the files below from_path to to_path, all or none; a copy that is there is
 * compared.  -ESTALE: what is to be copied is not what FILES says; -EEXIST: what is
 * there is something else. */
int  gitops_copy_make(const char *from, const char *from_path, const struct gitops_files *files,
	const char *to, const char *to_path, struct component_error *err);
/* Removes the directories in path that are not in use. */
void gitops_copies_tidy(const char *root, const char *path, bool (*in_use)(const char *copy, void *arg), void *arg);

/* ---- sync.c ---- */

/* One application while it is looked at. */
struct gitops_sync {
	const char *key; /* of its operation */
	const char *sources, *targets, *managed_root;
	char        managed_path[GITOPS_PATH_MAX];
	struct gitops_document operation, managed; /* wanted; ours as of now */
	const char *source, *target, *prune;       /* of the operation */
	unsigned    changed;                       /* files written or removed */
	struct component_error *err;
};

/* Reads what is ours; end frees both documents. */
int  gitops_sync_begin(struct gitops_sync *s);
/* The target's files are the operation's then; -ESTALE: the source is not.  -ECANCELED: as after
 * a kill -9, the next one finds out. */
int  gitops_sync_apply(struct gitops_sync *s);
/* The operation has gone: so does what it has brought, if it said so. */
int  gitops_sync_withdraw(struct gitops_sync *s);
void gitops_sync_end(struct gitops_sync *s);

/* ---- claims.c ---- */

struct gitops_claims {
	pthread_mutex_t      mutex;
	struct gitops_claim *first;
};

#define GITOPS_CLAIMS_INIT { PTHREAD_MUTEX_INITIALIZER, NULL }

/* Remembers an application.  1: it had another target before; that is free once gitops_claim_at() has said that
 * it is not there any more.  -EEXIST: its target, or a part of it, is another's, and it keeps the one that it had.
 * -EINPROGRESS: the same, but the other, whose key is a file below root, is about to be dropped: that has gone.
 * root NULL: nobody looks. */
int  gitops_claim(struct gitops_claims *c, const char *key, const char *source, const char *target, const char *root,
	struct component_error *err);
/* Its files (or its operation) are now at target.  true: it has left another one, which is free. */
bool gitops_claim_at(struct gitops_claims *c, const char *key, const char *target);
/* Claims what the documents below root say: who owned what when we last ran. */
int  gitops_claims_load(struct gitops_claims *c, const char *root, struct component_error *err);
void gitops_claim_drop(struct gitops_claims *c, const char *key);
/* How often in a row, this time included, its source was not what it was taken for; 0 if it is
 * now.  And how long to wait then: it doubles from first_ns to 256 times that. */
unsigned gitops_claim_stale(struct gitops_claims *c, const char *key, bool stale);
int64_t gitops_stale_ns(int64_t first_ns, unsigned times);
/* Enqueues the keys of all, of those that wait for a target, or of those whose
 * source or target holds path. */
enum gitops_claims_of { GITOPS_ALL, GITOPS_WAITING, GITOPS_SOURCE, GITOPS_TARGET };
void gitops_claims_tell(struct gitops_claims *c, enum gitops_claims_of of, const char *path,
	struct component_controller *controller);
/* Enqueues the key of each file below root whose name ends in FROM, which becomes TO: whose file has
 * gone while nobody looked is told by what was made of it. */
void gitops_made_tell(const char *root, const char *from, const char *to, struct component_controller *controller);

/* ---- directories.c ---- */

/* Where things are: "" becomes ROOT/name, which is made where it is missing; NULL
 * is not used by this program. */
struct gitops_directories {
	const char *root, *applications, *sources, *operations, *targets, *managed, *status, *locks;
	bool        wait; /* for the root, should another process have it */
};

#define GITOPS_ROOT "/var/lib/gitops"
#define GITOPS_DIRECTORY(name, variable, help) \
	COMPONENT_FLAG_STRING(name, variable, help, .section = "Directories", .argument = "DIR")

#define GITOPS_ROOT_FLAGS(directories)                                                                       \
	GITOPS_DIRECTORY("root", &(directories).root, "Where the directories below are, unless told otherwise."), \
	GITOPS_DIRECTORY("locks-dir", &(directories).locks,                                                       \
		"Where it is noted who works there; empty: ROOT/locks."),                                         \
	COMPONENT_FLAG_BOOL("wait-for-root", &(directories).wait,                                                 \
		"Wait, not ready, while another process of this program works there; else that is an error.",     \
		.section = "Directories")

/* For --check-config: is there a root? */
int  gitops_directories_check(struct component *c, const struct gitops_directories *d, struct component_error *err);
int gitops_directories_find(struct gitops_directories *d, struct component_error *err);

/* ---- lock.c ---- */

/*
 * From spec.start: finds the directories, and calls begin once no other process of this
 * program works below the root.  That is at once or, with --leader-elect or --wait-for-root, when the other
 * one has ended.  -EBUSY: it is taken, and err says by whom.  As component_lead().
 */
int gitops_begin(struct component *c, struct gitops_directories *d,
	int (*begin)(struct component *c, struct component_error *err), struct component_error *err);

#endif
