/*
 * test_leader.c - one of several leads: the lock alone, then components in one process, which
 * exclude each other as processes do.
 *
 * flock(2) and fstatfs(2) are played here where they are to fail or to hang.
 */
#include <config.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/controller.h>

#include "leader.h"
#include "life.h"
#include "our_thread.h"
#include "tree.h"
#include "waiting.h"

#define MS COMPONENT_MILLISECONDS(1)
#define DEADLINE_NS COMPONENT_SECONDS(60)
#define LOCK "locks/test.lock"
#define QUICK "--leader-elect-lease-duration=61s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=5ms"
#define LED "pid: 4711\nhost: \"elsewhere\"\nsince: \"2026-01-02T03:04:05Z\"\n"

static char root[64];
static struct component_error err;
static atomic_int flock_error;
static atomic_bool flock_hangs, flock_hung;
static uint64_t magic; /* of all file systems; 0: as it is */

/* ---- file systems that fail ---- */

int
flock(int fd, int operation)
{
	if (flock_hangs) {
		flock_hung = true;
		WAIT_FOR(!flock_hangs);
	}
	if (flock_error == 0)
		return (int)syscall(SYS_flock, fd, operation);
	errno = flock_error;
	return -1;
}

int
fstatfs(int fd, struct statfs *ret)
{
	int r = (int)syscall(SYS_fstatfs, fd, ret);

	if (magic != 0)
		ret->f_type = (__typeof__(ret->f_type))magic;
	return r;
}

/* ---- the lock alone ---- */

static const char *
at(const char *name)
{
	return tree_path(root, name);
}

static void
put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static char *
text_of(const char *name)
{
	static char text[4096];
	FILE *f = fopen(at(name), "r");
	size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);

	text[n] = '\0';
	if (f != NULL)
		fclose(f);
	return text;
}

static void *
lock_open(bool shared)
{
	struct leader_place place = { .path = at(LOCK), .option = "locks-dir", .busy = "stop it", .shared = shared };
	void *lock;

	assert_int_equal(leader_flock.open(&place, &lock), 0);
	return lock;
}

static void
lock_close(void *lock)
{
	leader_flock.release(lock);
	leader_flock.free(lock);
}

static void
who_has_a_lock_says_so_and_who_comes_second_is_told(void **state)
{
	void *first = lock_open(true), *second = lock_open(true);
	struct leader_record before, holder;
	char pid[32];

	(void)state;
	assert_int_equal(leader_flock.take(first, &before, &err), 0);
	assert_false(before.has_led);
	leader_flock.announce(first, "a_1_b", 7, true);
	assert_int_equal(leader_flock.take(second, &holder, &err), -EBUSY);
	snprintf(pid, sizeof pid, "pid %ld on ", (long)getpid());
	assert_non_null(strstr(holder.text, pid));
	assert_non_null(strstr(holder.text, " since 20"));
	assert_non_null(strstr(err.text, holder.text));
	assert_non_null(strstr(err.text, "; stop it"));
	assert_string_equal(holder.identity, "a_1_b");
	assert_int_equal(holder.transitions, 7);
	assert_true(holder.has_led);
	leader_flock.release(first);
	assert_int_equal(leader_flock.take(second, &holder, &err), 0);
	assert_true(holder.has_led);
	lock_close(second);
	lock_close(first);
}

static void
a_file_of_an_older_version_names_its_holder(void **state)
{
	void *lock = lock_open(false);
	struct leader_record holder;
	int other;

	(void)state;
	put(LOCK, LED);
	other = open(at(LOCK), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX), 0);
	assert_int_equal(leader_flock.take(lock, &holder, &err), -EBUSY);
	assert_non_null(strstr(err.text, "pid 4711 on elsewhere since 2026-01-02T03:04:05Z"));
	close(other);
	assert_int_equal(leader_flock.take(lock, &holder, &err), 0);
	assert_true(holder.has_led);
	lock_close(lock);
}

static void
a_new_file_one_only_waited_for_and_a_copy_are_locks_by_which_nobody_has_led(void **state)
{
	void *lock = lock_open(false);
	struct leader_record before;

	(void)state;
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	assert_false(before.has_led);
	leader_flock.announce(lock, "a_1_b", 0, false);
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	assert_false(before.has_led);
	leader_flock.announce(lock, "a_1_b", 0, true);
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	assert_true(before.has_led);
	leader_flock.release(lock);
	put("locks/copy", text_of(LOCK));
	assert_int_equal(rename(at("locks/copy"), at(LOCK)), 0);
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	assert_false(before.has_led);
	lock_close(lock);
}

static void
a_lock_is_lost_with_its_file_its_descriptor_and_its_directory(void **state)
{
	void *lock = lock_open(false);
	struct leader_record before;

	(void)state;
	for (int n = 0; n < 4; n++) {
		assert_int_equal(leader_flock.take(lock, &before, &err), 0);
		assert_int_equal(leader_flock.verify(lock, &err), 0);
		if (n == 0)
			unlink(at(LOCK));
		if (n == 1) {
			put("other", "");
			assert_int_equal(rename(at("other"), at(LOCK)), 0);
		}
		if (n == 2)
			assert_int_equal(rename(at("locks"), at("moved")), 0);
		if (n == 3) /* as a daemon does that closes all it does not know */
			for (int fd = 3; fd < 64; fd++)
				close(fd);
		assert_int_equal(leader_flock.verify(lock, &err), -ESTALE);
		assert_non_null(strstr(err.text, n == 3 ? "closed" : "was removed or replaced"));
		if (n == 2)
			assert_int_equal(rename(at("moved"), at("locks")), 0);
	}
	lock_close(lock);
}

static void
a_lock_that_names_another_process_by_now_is_lost(void **state)
{
	void *lock = lock_open(false);
	struct leader_record before;

	(void)state;
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	leader_flock.announce(lock, "a_1_b", 0, true);
	assert_int_equal(leader_flock.verify(lock, &err), 0);
	put(LOCK, "identity: \"c_2_d\"\n"); /* as after a server that has lent it meanwhile */
	assert_int_equal(leader_flock.verify(lock, &err), -ESTALE);
	assert_non_null(strstr(err.text, "names another process"));
	put(LOCK, ""); /* a full disk */
	assert_int_equal(leader_flock.verify(lock, &err), 0);
	lock_close(lock);
}

static void
a_lock_that_cannot_be_written_holds_whoever_it_names(void **state)
{
	void *lock = lock_open(false);
	struct leader_record before;
	struct rlimit usual, none;

	(void)state;
	put(LOCK, LED "identity: \"c_2_d\"\n");
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
	none = usual;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	leader_flock.announce(lock, "a_1_b", 1, true);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
	assert_non_null(strstr(text_of(LOCK), "c_2_d"));
	assert_int_equal(leader_flock.verify(lock, &err), 0);
	put(LOCK, "identity: \"e_3_f\"\n");
	assert_int_equal(leader_flock.verify(lock, &err), -ESTALE);
	leader_flock.announce(lock, "a_1_b", 1, true);
	assert_int_equal(leader_flock.verify(lock, &err), 0);
	lock_close(lock);
}

static void
what_cannot_be_asked_is_not_lost(void **state)
{
	void *lock = lock_open(false);
	struct leader_record before;

	(void)state;
	assert_int_equal(leader_flock.take(lock, &before, &err), 0);
	flock_error = EIO;
	assert_int_equal(leader_flock.verify(lock, &err), -EIO);
	flock_error = 0;
	assert_int_equal(leader_flock.verify(lock, &err), 0);
	lock_close(lock);
}

static void
who_waits_for_a_file_that_was_removed_waits_until_its_holder_has_ended(void **state)
{
	void *first = lock_open(false), *second = lock_open(false);
	struct leader_record before;

	(void)state;
	assert_int_equal(leader_flock.take(first, &before, &err), 0);
	assert_int_equal(leader_flock.take(second, &before, &err), -EBUSY);
	unlink(at(LOCK));
	put(LOCK, "");
	assert_int_equal(leader_flock.take(second, &before, &err), -EBUSY);
	leader_flock.release(first);
	assert_int_equal(leader_flock.take(second, &before, &err), 0);
	assert_int_equal(leader_flock.verify(second, &err), 0); /* it is the new one */
	lock_close(second);
	lock_close(first);
}

static void
a_child_has_no_part_in_the_lock(void **state)
{
	void *first = lock_open(false), *second = lock_open(false);
	struct leader_record before;
	pid_t child;

	(void)state;
	assert_int_equal(leader_flock.take(first, &before, &err), 0);
	child = fork();
	if (child == 0) {
		alarm(600);
		for (;;)
			pause();
	}
	lock_close(first);
	assert_int_equal(leader_flock.take(second, &before, &err), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	lock_close(second);
}

static void
where_there_are_no_locks_the_option_is_named(void **state)
{
	static const int errors[] = { ENOLCK, EOPNOTSUPP, ENOSYS };
	void *lock = lock_open(false);
	struct leader_record before;

	(void)state;
	for (size_t n = 0; n < sizeof errors / sizeof *errors; n++) {
		flock_error = errors[n];
		assert_int_equal(leader_flock.take(lock, &before, &err), -errors[n]);
		assert_non_null(strstr(err.text, "--locks-dir"));
		assert_non_null(strstr(err.text, strerror(errors[n])));
	}
	lock_close(lock);
}

static void
file_systems_whose_locks_do_not_hold_between_hosts_are_refused(void **state)
{
	static const struct { uint64_t magic; bool device; const char *options; bool holds; } cases[] = {
		{ 0xef53, true, "ext4 /dev/sda1 rw", true },
		{ 0x58465342, true, NULL, true },
		{ 0x01021994, false, "tmpfs tmpfs rw", true },
		{ 0x794c7630, false, "overlay overlay rw", true },
		{ 0x9123683e, false, NULL, true },
		{ 0x00c36400, false, "ceph h:/ rw", true },
		{ 0x6969, false, "nfs4 h:/e rw,vers=4.2,local_lock=none,addr=1", true },
		{ 0x6969, false, "nfs h:/e rw,local_lock=posix\n", true }, /* flock goes to the server */
		{ 0x6969, false, "nfs h:/e rw,nolock,local_lock=all", false },
		{ 0x6969, false, "nfs h:/e rw,local_lock=flock", false },
		{ 0x6969, false, "nfs h:/e rw,nolock,local_lock=none", false },
		{ 0x6969, false, "nfs h:/local_lock=none rw", false }, /* a name of somebody's */
		{ 0x6969, false, NULL, false },                        /* without /proc */
		{ 0x01021997, false, "9p share rw,trans=virtio", false },
		{ 0x65735546, false, "fuse.sshfs h: rw", false },
		{ 0x65735546, true, "fuseblk /dev/sdb1 rw", true },
		{ 0xff534d42, false, "cifs //h/s rw", false },
		{ 0xfe534d42, false, "smb3 //h/s rw", false },
		{ 0x0bd00bd0, false, "lustre m@tcp:/l rw,flock", true },
		{ 0x0bd00bd0, false, "lustre m@tcp:/l rw,localflock", false },
		{ 0x0bd00bd0, false, "lustre m@tcp:/l rw", false },
		{ 0x01161970, true, "gfs2 /dev/c rw", true },
		{ 0x01161970, true, "gfs2 /dev/c rw,localflocks", false },
		{ 0x7461636f, true, "ocfs2 /dev/c rw,localflocks", false },
		{ 0x12345678, false, "novel x rw", false },
	};

	(void)state;
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
		if (leader_flock_holds(cases[n].magic, cases[n].device, cases[n].options) != cases[n].holds)
			fail_msg("%s", cases[n].options == NULL ? "no options" : cases[n].options);
}

static void
a_refusal_names_the_option_the_file_system_and_what_to_do(void **state)
{
	void *lock = lock_open(true), *own = lock_open(false);
	struct leader_record before;

	(void)state;
	magic = 0x6969; /* but mounted as whatever /tmp is: without local_lock=none */
	assert_int_equal(leader_flock.take(lock, &before, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "--locks-dir"));
	assert_non_null(strstr(err.text, "two processes could lead at once"));
	assert_non_null(strstr(err.text, "neither nolock nor local_lock"));
	assert_int_equal(leader_flock.take(own, &before, &err), 0); /* as before there was an election */
	lock_close(own);
	lock_close(lock);
}

/* ---- components ---- */

struct member {
	struct component           *c;
	struct component_controller_spec spec;
	struct component_controller *controller;
	const char                 *directory; /* of the lock */
	char                        log[96];
	atomic_int                  calls, inside;
	atomic_bool                 blocks;
	int                         begun;
	bool                        bare; /* nothing is said of a lock */
	bool                        always, wait;
};

static struct member members[3], *const a = &members[0], *const b = &members[1], *const other = &members[2];

static void
reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	struct member *m = arg;

	(void)c, (void)key, (void)ret;
	m->inside++;
	WAIT_FOR(!m->blocks);
	m->calls++;
	m->inside--;
}

static struct member *
member_of(struct component *c)
{
	for (size_t n = 0; n < sizeof members / sizeof *members; n++)
		if (members[n].c == c)
			return &members[n];
	return NULL;
}

static int
begin(struct component *c, struct component_error *e)
{
	struct member *m = member_of(c);

	m->begun++;
	return component_controller_start(c, &m->spec, &m->controller, e);
}

static int
parse(struct member *m, const char *const *options)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "test", .summary = "Tests.");
	char *argv[16] = { (char *)(uintptr_t)"test", (char *)(uintptr_t)"--log-file", m->log };
	int argc = 3;

	for (; options != NULL && *options != NULL; options++)
		argv[argc++] = (char *)(uintptr_t)*options;
	assert_int_equal(component_new(&spec, &m->c, &err), 0);
	assert_int_equal(component_use(m->c, component_controllers(), &err), 0);
	return component_parse(m->c, argc, argv, &err);
}

static int
start(struct member *m, const char *const *options)
{
	struct component_lead_spec lead = { .size = sizeof lead, .directory = m->directory, .option = "locks-dir",
		.guards = "root", .advice = "stop it", .always = m->always, .wait = m->wait, .begin = begin };

	assert_int_equal(parse(m, options), 0);
	assert_int_equal(component_start(m->c, &err), 0);
	return m->bare ? component_controller_start(m->c, &m->spec, NULL, &err) : component_lead(m->c, &lead, &err);
}
#define START(m, ...) start(m, (const char *const[]){ __VA_ARGS__, NULL })

/* Runs all loops until the condition holds. */
#define run_until(condition) do { \
		int64_t end_ns = now_ns() + DEADLINE_NS; \
		while (!(condition)) { \
			assert_true(now_ns() < end_ns); \
			poll(NULL, 0, 1); \
			for (size_t run_n = 0; run_n < sizeof members / sizeof *members; run_n++) \
				if (members[run_n].c != NULL) \
					component_dispatch(members[run_n].c); \
		} \
	} while (0)

static void
run_for(int64_t ns)
{
	int64_t end = now_ns() + ns;

	run_until(now_ns() >= end);
}

static bool
leads(struct member *m)
{
	struct leader_status status;

	return leader_status(m->c, &status) && status.is_leader;
}

static int
ends(struct member *m)
{
	int status = -1;

	component_stop(m->c);
	run_until(component_finished(m->c, &status));
	component_free(m->c);
	m->c = NULL;
	return status;
}

static char said[512];

static void
visit(void *arg, const char *name, int status, const char *text)
{
	(void)arg;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s %s %s\n", status == 0 ? "+" : "-", name, text);
}

static const char *
checks(struct member *m)
{
	*said = '\0';
	component_checks_run(m->c, visit, NULL);
	return said;
}

static const char *
log_of(const struct member *m)
{
	return text_of(m->log + strlen(root) + 1);
}

static int
setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/component-leader-XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	mkdir(at("locks"), 0755);
	mkdir(at("things"), 0755);
	put("things/key", "");
	memset(members, 0, sizeof members);
	for (size_t n = 0; n < sizeof members / sizeof *members; n++) {
		snprintf(members[n].log, sizeof members[n].log, "%s/log%zu", root, n);
		members[n].directory = strdup(at("locks"));
		members[n].spec = (struct component_controller_spec){ .size = sizeof members[n].spec, .name = "things",
			.directory = strdup(at("things")), .reconcile = reconcile, .arg = &members[n] };
	}
	flock_error = 0;
	magic = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof members / sizeof *members; n++) {
		members[n].blocks = false;
		if (members[n].c != NULL && component_phase(members[n].c) == COMPONENT_PHASE_FINISHED)
			WAIT_FOR(!held_work_any(members[n].c)); /* what was not waited for is not freed */
		component_free(members[n].c);
		free((char *)(uintptr_t)members[n].directory);
		free((char *)(uintptr_t)members[n].spec.directory);
	}
	return tree_remove(root);
}

static int
count_files(const char *path)
{
	struct dirent *entry;
	DIR *d = opendir(at(path));
	int n = 0;

	while (d != NULL && (entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.';
	if (d != NULL)
		closedir(d);
	return n;
}

static void
without_leader_elect_there_is_no_thread_and_no_file(void **state)
{
	unsigned threads = our_thread_count();
	struct leader_status status;

	(void)state;
	a->bare = true;
	assert_int_equal(START(a, "--leader-elect-lock=/nowhere/at/all"), 0);
	assert_int_equal(START(b, "--leader-elect=false"), 0);
	run_until(a->calls > 0 && b->calls > 0);
	assert_int_equal(our_thread_count(), threads);
	assert_int_equal(count_files("locks"), 0);
	assert_true(leader_status(a->c, &status));
	assert_false(status.enabled);
	assert_null(strstr(checks(a), "leader"));
	assert_int_equal(ends(a), 0);
	assert_int_equal(ends(b), 0);
}

static void
options_that_contradict_each_other_are_refused_by_client_gos_rules(void **state)
{
	static const struct { const char *options[4], *says; } cases[] = {
		{ { "--leader-elect", "--leader-elect-lease-duration=10s" }, "'--leader-elect-lease-duration': '10s': it is not above "
			"--leader-elect-renew-deadline '10s'; raise it or lower the other" },
		{ { "--leader-elect", "--leader-elect-retry-period=9s" }, "'--leader-elect-renew-deadline': '10s': it is not above "
			"1.2 times --leader-elect-retry-period '9s'" },
		{ { "--leader-elect", "--leader-elect-retry-period=0" }, "'--leader-elect-retry-period': '0'" },
		{ { "--leader-elect", "--leader-elect-resource-lock=leases" }, "'--leader-elect-resource-lock': 'leases': leases of "
			"Kubernetes cannot be taken yet; write flock" },
		{ { "--leader-elect", "--leader-elect-resource-lock=zookeeper" }, "there is no such kind of lock; write flock" },
		{ { "--leader-elect", "--leader-elect-resource-name=a/b" }, "without '/'" },
		{ { "--leader-elect", "--leader-elect-resource-namespace=n", "--leader-elect-lock=/x" }, "leave one of them out" },
	};

	(void)state;
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		int status = -1;

		assert_int_equal(parse(a, cases[n].options), -EINVAL);
		if (strstr(err.text, cases[n].says) == NULL)
			fail_msg("'%s' is not in: %s", cases[n].says, err.text);
		assert_true(component_finished(a->c, &status));
		assert_int_equal(status, 2);
		component_free(a->c);
		a->c = NULL;
	}
	assert_int_equal(parse(a, (const char *const[]){ "--leader-elect-lease-duration=1s",
		"--leader-elect-resource-lock=leases", NULL }), 0); /* as with component-base: what is off is not looked at */
}

static void
without_a_place_for_a_lock_the_option_is_named(void **state)
{
	(void)state;
	a->bare = true;
	assert_int_equal(START(a, "--leader-elect"), -EINVAL);
	assert_non_null(strstr(err.text, "write --leader-elect-lock=FILE"));
	assert_int_equal(ends(a), 0);
	assert_int_equal(a->calls, 0);
}

static void
one_leads_and_another_stands_by_ready_until_the_first_has_finished_its_work(void **state)
{
	struct leader_status first, second;

	(void)state;
	put(LOCK, LED);
	a->blocks = true;
	assert_int_equal(START(a, "--leader-elect", QUICK), 0);
	assert_true(leads(a));
	run_until(a->inside == 1);
	assert_int_equal(START(b, "--leader-elect", QUICK), 0);
	run_until(leader_status(b->c, &second) && strstr(second.holder, "pid ") != NULL);
	assert_true(leader_status(a->c, &first));
	assert_true(first.enabled && second.enabled && first.is_leader && !second.is_leader);
	assert_true(first.since_ns > 0 && second.since_ns == 0);
	assert_string_not_equal(first.identity, second.identity);
	assert_non_null(strstr(text_of(LOCK), first.identity));
	assert_string_equal(first.lock, at(LOCK));
	assert_string_equal(first.name, "test");
	assert_string_equal(first.holder, first.identity);
	assert_int_equal(first.transitions, 0);
	assert_non_null(strstr(checks(a), "+ leader ok: this process leads\n"));
	assert_non_null(strstr(checks(b), "+ leader ok: led by pid "));
	component_stop(a->c);
	run_for(50 * MS); /* in which the other one tries again and again */
	assert_false(leads(b));
	assert_int_equal(b->begun, 0);
	a->blocks = false;
	run_until(b->calls == 1);
	assert_int_equal(a->calls, 1);
	assert_true(leader_status(b->c, &second));
	assert_int_equal(second.transitions, 1);
	assert_non_null(strstr(log_of(a), "stopped leading"));
	assert_null(strstr(log_of(a), "lost"));
	assert_non_null(strstr(log_of(b), "became leader"));
	assert_int_equal(ends(a), 0);
	assert_int_equal(ends(b), 0);
}

static void
controllers_that_were_started_before_run_when_the_process_leads(void **state)
{
	char option[128];

	(void)state;
	put(LOCK, LED);
	snprintf(option, sizeof option, "--leader-elect-lock=%s", at(LOCK));
	a->bare = b->bare = true;
	assert_int_equal(START(a, "--leader-elect", option, QUICK), 0);
	assert_int_equal(START(b, "--leader-elect", option, QUICK), 0);
	run_until(a->calls == 1);
	put("things/new", "");
	run_until(a->calls >= 2);
	assert_int_equal(b->calls, 0);
	assert_int_equal(ends(a), 0);
	run_until(b->calls >= 2);
	assert_int_equal(ends(b), 0);
}

static void
a_standby_stops_as_if_nothing_were(void **state)
{
	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", QUICK), 0);
	assert_int_equal(START(b, "--leader-elect", QUICK), 0);
	assert_int_equal(ends(b), 0);
	assert_int_equal(b->begun, 0);
	assert_true(leads(a));
	assert_int_equal(ends(a), 0);
}

static void
who_takes_a_new_lock_waits_a_lease_duration(void **state)
{
	int64_t begun_ns = now_ns();

	(void)state;
	assert_int_equal(START(a, "--leader-elect", "--leader-elect-lease-duration=2100ms",
		"--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=5ms"), 0);
	assert_false(leads(a));
	assert_non_null(strstr(checks(a), "+ leader ok: nobody has led by this lock: waiting 2.1s"));
	run_until(a->begun == 1);
	assert_true(now_ns() - begun_ns >= 2100 * MS);
	a->begun = 0;
	assert_int_equal(ends(a), 0);
	assert_int_equal(START(a, "--leader-elect", QUICK), 0);
	assert_int_equal(a->begun, 1); /* somebody has led by it now */
	assert_int_equal(ends(a), 0);
}

static void
who_loses_the_lock_takes_no_further_key_and_ends_with_status_1(void **state)
{
	int status = -1, calls;

	(void)state;
	put(LOCK, LED);
	a->blocks = true;
	for (char n = 'a'; n < 'z'; n++)
		put((const char[]){ 't', 'h', 'i', 'n', 'g', 's', '/', n, '\0' }, "");
	assert_int_equal(START(a, "--leader-elect", "--shutdown-delay=1h", QUICK), 0);
	run_until(a->inside == 1);
	unlink(at(LOCK));
	run_until(component_finished(a->c, &status)); /* though a reconcile is in the middle */
	assert_int_equal(status, 1);
	assert_non_null(strstr(log_of(a), "leader election lost: "));
	assert_non_null(strstr(log_of(a), "was removed or replaced"));
	assert_false(leads(a));
	calls = a->calls;
	a->blocks = false;
	WAIT_FOR(a->inside == 0);
	rest_ns(20 * MS);
	assert_int_equal(a->calls, calls + 1);
}

static void
who_loses_the_lock_in_a_stop_ends_at_once_with_status_1(void **state)
{
	static const struct { const char *option; enum component_phase phase; } cases[] = {
		{ "--shutdown-delay=1h", COMPONENT_PHASE_DELAYING },
		{ "--graceful-shutdown-timeout=1h", COMPONENT_PHASE_DRAINING },
	};

	(void)state;
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		int status = -1;

		put(LOCK, LED);
		a->blocks = true;
		assert_int_equal(START(a, "--leader-elect", cases[n].option, QUICK), 0);
		run_until(a->inside == 1);
		component_stop(a->c);
		run_until(component_phase(a->c) == cases[n].phase);
		unlink(at(LOCK));
		run_until(component_finished(a->c, &status)); /* though a reconcile is in the middle */
		assert_int_equal(status, 1);
		assert_non_null(strstr(log_of(a), "leader election lost: "));
		assert_non_null(strstr(log_of(a), "work is not finished"));
		a->blocks = false;
		WAIT_FOR(!held_work_any(a->c));
		component_free(a->c);
		a->c = NULL;
	}
}

static void
who_cannot_verify_it_within_the_renew_deadline_ends_with_status_1(void **state)
{
	struct leader_status last;
	int status = -1;

	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=20ms"), 0);
	run_until(a->calls == 1);
	flock_error = EIO;
	run_until(component_finished(a->c, &status));
	flock_error = 0;
	assert_int_equal(status, 1);
	assert_true(leader_status(a->c, &last));
	assert_true(last.slow_paths > 0);
	assert_non_null(strstr(log_of(a), "was not verified within 2s"));
}

static void
what_fails_for_a_while_is_no_loss(void **state)
{
	struct leader_status status;

	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", QUICK), 0);
	flock_error = EIO;
	run_until(leader_status(a->c, &status) && status.slow_paths > 2);
	flock_error = 0;
	run_for(20 * MS);
	assert_true(leads(a));
	assert_int_equal(ends(a), 0);
}

static void
a_file_system_that_hangs_keeps_nobody_from_ending(void **state)
{
	unsigned threads = our_thread_count();
	int status = -1;

	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=5ms"), 0);
	run_until(a->calls == 1);
	flock_hangs = true;
	run_until(component_finished(a->c, &status));
	assert_true(flock_hung);
	assert_int_equal(status, 1);
	run_until(a->inside == 0);
	component_free(a->c);
	a->c = NULL;
	flock_hangs = false; /* the thread that is left finds its component gone */
	WAIT_FOR(our_thread_count() == threads);
}

static void
no_key_is_begun_that_is_not_verified_in_time_even_if_the_loop_hangs(void **state)
{
	int64_t hung_ns;
	int calls;

	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=5ms"), 0);
	run_until(a->calls >= 1);
	flock_hung = false;
	flock_hangs = true;
	WAIT_FOR(flock_hung); /* the loop does not run any more */
	hung_ns = now_ns();
	WAIT_FOR(now_ns() > hung_ns + 2000 * MS && a->inside == 0);
	calls = a->calls;
	component_controller_enqueue(a->controller, "late");
	rest_ns(50 * MS);
	assert_int_equal(a->calls, calls);
	flock_hangs = false;
	WAIT_FOR(a->calls == calls + 1);
	assert_int_equal(ends(a), 0);
}

static void
a_leader_elsewhere_waits_for_the_components_own_lock_too(void **state)
{
	char option[128];

	(void)state;
	snprintf(option, sizeof option, "--leader-elect-lock=%s", at("elsewhere"));
	put("elsewhere", LED);
	a->always = b->always = true;
	assert_int_equal(start(a, NULL), 0); /* not elected, and the only one */
	assert_int_equal(a->begun, 1);
	assert_int_equal(START(b, "--leader-elect", option, QUICK), 0);
	run_until(strstr(checks(b), "led by pid ") != NULL);
	assert_int_equal(b->begun, 0);
	assert_int_equal(ends(a), 0);
	run_until(b->begun == 1);
	assert_int_equal(ends(b), 0);
}

static void
the_components_own_lock_may_be_the_elections_by_another_name(void **state)
{
	char option[128];

	(void)state;
	snprintf(option, sizeof option, "--leader-elect-lock=%s", at("locks/../" LOCK));
	put(LOCK, LED);
	a->always = true;
	assert_int_equal(START(a, "--leader-elect", option, QUICK), 0);
	run_until(leads(a));
	assert_int_equal(ends(a), 0);
}

static void
names_make_elections_of_their_own(void **state)
{
	(void)state;
	put("locks/blue.shop.lock", LED);
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", "--leader-elect-resource-name=shop",
		"--leader-elect-resource-namespace=blue", QUICK), 0);
	assert_int_equal(START(b, "--leader-elect", QUICK), 0);
	assert_true(leads(a) && leads(b));
	assert_non_null(strstr(text_of("locks/blue.shop.lock"), "identity"));
	assert_int_equal(ends(a), 0);
	assert_int_equal(ends(b), 0);
}

static void
without_an_election_a_second_one_is_refused_or_waits_and_is_not_ready(void **state)
{
	(void)state;
	a->always = b->always = other->always = true;
	other->wait = true;
	assert_int_equal(start(a, NULL), 0);
	assert_int_equal(start(b, NULL), -EBUSY);
	assert_non_null(strstr(err.text, "another process works there: pid "));
	assert_non_null(strstr(err.text, "; stop it"));
	assert_int_equal(start(other, NULL), 0);
	assert_non_null(strstr(checks(other), "- root "));
	run_for(20 * MS);
	assert_int_equal(other->begun, 0);
	assert_int_equal(ends(a), 0);
	run_until(other->begun == 1);
	assert_non_null(strstr(checks(other), "+ root "));
	assert_int_equal(ends(other), 0);
	assert_int_equal(ends(b), 0);
}

static void
a_failure_after_waiting_ends_the_component(void **state)
{
	int status = -1;

	(void)state;
	a->always = b->always = b->wait = true;
	assert_int_equal(start(a, NULL), 0);
	assert_int_equal(start(b, NULL), 0);
	assert_int_equal(ends(a), 0);
	flock_error = ENOLCK;
	run_until(component_finished(b->c, &status));
	flock_error = 0;
	assert_int_equal(status, 1);
	assert_int_equal(b->begun, 0);
	assert_non_null(strstr(log_of(b), "--locks-dir"));
}

static void
a_forked_child_can_free_its_copy_and_the_parent_leads_on(void **state)
{
	struct leader_status status;
	pid_t child;
	int result;

	(void)state;
	put(LOCK, LED);
	assert_int_equal(START(a, "--leader-elect", QUICK), 0);
	child = fork();
	if (child == 0) {
		alarm(600);
		result = leader_status(a->c, &status);
		component_free(a->c);
		_exit(result);
	}
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_int_equal(result, 0);
	run_until(a->calls == 1);
	assert_true(leads(a));
	assert_int_equal(ends(a), 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(who_has_a_lock_says_so_and_who_comes_second_is_told),
		CASE(a_file_of_an_older_version_names_its_holder),
		CASE(a_new_file_one_only_waited_for_and_a_copy_are_locks_by_which_nobody_has_led),
		CASE(a_lock_is_lost_with_its_file_its_descriptor_and_its_directory),
		CASE(a_lock_that_names_another_process_by_now_is_lost),
		CASE(a_lock_that_cannot_be_written_holds_whoever_it_names),
		CASE(what_cannot_be_asked_is_not_lost),
		CASE(who_waits_for_a_file_that_was_removed_waits_until_its_holder_has_ended),
		CASE(a_child_has_no_part_in_the_lock),
		CASE(where_there_are_no_locks_the_option_is_named),
		CASE(file_systems_whose_locks_do_not_hold_between_hosts_are_refused),
		CASE(a_refusal_names_the_option_the_file_system_and_what_to_do),
		CASE(without_leader_elect_there_is_no_thread_and_no_file),
		CASE(options_that_contradict_each_other_are_refused_by_client_gos_rules),
		CASE(without_a_place_for_a_lock_the_option_is_named),
		CASE(one_leads_and_another_stands_by_ready_until_the_first_has_finished_its_work),
		CASE(controllers_that_were_started_before_run_when_the_process_leads),
		CASE(a_standby_stops_as_if_nothing_were),
		CASE(who_takes_a_new_lock_waits_a_lease_duration),
		CASE(who_loses_the_lock_takes_no_further_key_and_ends_with_status_1),
		CASE(who_loses_the_lock_in_a_stop_ends_at_once_with_status_1),
		CASE(who_cannot_verify_it_within_the_renew_deadline_ends_with_status_1),
		CASE(what_fails_for_a_while_is_no_loss),
		CASE(a_file_system_that_hangs_keeps_nobody_from_ending),
		CASE(no_key_is_begun_that_is_not_verified_in_time_even_if_the_loop_hangs),
		CASE(a_leader_elsewhere_waits_for_the_components_own_lock_too),
		CASE(the_components_own_lock_may_be_the_elections_by_another_name),
		CASE(names_make_elections_of_their_own),
		CASE(without_an_election_a_second_one_is_refused_or_waits_and_is_not_ready),
		CASE(a_failure_after_waiting_ends_the_component),
		CASE(a_forked_child_can_free_its_copy_and_the_parent_leads_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
