#!/usr/bin/env python3
"""make release: what it refuses to publish, and what it publishes.

A checkout of its own stands for the real one: a few files and some commits.  That the
tarball builds is tested by dist.t.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

MAP = "COMPONENT_0 {\nglobal:\n%s\nlocal:\n\t*;\n};\n"
DEBIAN = "libcomponent (%s-0upstream1) unstable; urgency=medium\n"
AUTHOR = {"GIT_%s_%s" % (who, what): "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder, *args):
    r = run("git", "-C", folder, *args, env=dict(os.environ, **AUTHOR, GIT_CONFIG_GLOBAL="/dev/null"))
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def commit(folder, **files):
    names = {"news": "NEWS.md", "debian": "deploy/debian/changelog", "map": "components/libcomponent.map", "mk": "components/local.mk"}
    for key, text in files.items():
        path = os.path.join(folder, names[key])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


@contextlib.contextmanager
def checkout():
    """One whose 0.2.0 is ready."""
    if not shutil.which("git"):
        raise Skip("no git")
    with tempdir() as folder:
        git(folder, "init", "-q")
        os.makedirs(folder + "/scripts")
        shutil.copy(SRC + "/scripts/release", folder + "/scripts/release")
        commit(folder, news="# News\n\n## 0.2.0 (2026-01-02)\n\n- x\n", map=MAP % "\tcomponent_a;\n\tcomponent_b;",
               mk="L = -version-info 1:0:1 \\\n", debian=DEBIAN % "0.2.0")
        yield folder


def ready(folder, version="0.2.0"):
    return run(folder + "/scripts/release", "ready", version)


def refused(r, words):
    equal(r.returncode, 1, r.stdout + r.stderr)
    contains(r.stderr, words)


@test
def a_clean_checkout_with_its_news_is_ready():
    with checkout() as folder:
        equal(ready(folder).stderr, "")
        git(folder, "tag", "v0.2.0")
        equal(ready(folder).stderr, "", "its own tag")


@test
def changes_and_news_without_a_date_are_refused():
    with checkout() as folder:
        refused(ready(folder, "0.3.0"), "write '## 0.3.0 (")
        with open(folder + "/new", "w") as f:
            f.write("x")
        refused(ready(folder), "there are changes")
        os.unlink(folder + "/new")
        commit(folder, news="# News\n\n## 0.2.0 (unreleased)\n")
        refused(ready(folder), "NEWS.md begins with '## 0.2.0 (unreleased)'")
        commit(folder, news="# News\n\n## 0.2.1 (2026-01-03)\n")
        refused(ready(folder, "0.2.1"), "deploy/debian/changelog begins with 0.2.0: add 0.2.1-0upstream1")
        shutil.rmtree(folder + "/.git")
        refused(ready(folder), "no git checkout")


@test
def a_version_is_published_once():
    with checkout() as folder:
        git(folder, "tag", "v0.2.0")
        commit(folder, news="# News\n\n## 0.2.0 (2026-01-03)\n")
        refused(ready(folder), "v0.2.0 is another commit")


@test
def what_the_last_release_has_promised_is_kept_or_the_soname_is_another():
    news = "# News\n\n## 0.3.0 (2026-02-02)\n"
    with checkout() as folder:
        git(folder, "tag", "v0.2.0")
        commit(folder, news=news, debian=DEBIAN % "0.3.0")
        refused(ready(folder, "0.3.0"), "-version-info of components/local.mk is that of v0.2.0")
        commit(folder, mk="L = -version-info 2:0:2 \\\n")
        equal(ready(folder, "0.3.0").stderr, "")
        commit(folder, map=MAP % "\tcomponent_b;\n\tcomponent_c;")
        refused(ready(folder, "0.3.0"), "the soname is still its: component_a ")
        commit(folder, mk="L = -version-info 2:0:0 \\\n")
        equal(ready(folder, "0.3.0").stderr, "")


@test
def the_tarball_gets_its_sum_and_a_signature_where_there_is_a_key():
    with tempdir() as folder:
        tarball = folder + "/libcomponent-1.tar.xz"
        with open(tarball, "w") as f:
            f.write("x" * 1000)
        r = run(SRC + "/scripts/release", "sign", tarball)
        equal(r.returncode, 0, r.stderr)
        contains(r.stdout, "not signed")
        equal(run("sha256sum", "-c", tarball + ".sha256", cwd=folder).stdout, "libcomponent-1.tar.xz: OK\n")
        if not shutil.which("gpg"):
            raise Skip("no gpg")
        env = dict(os.environ, GNUPGHOME=folder)
        os.chmod(folder, 0o700)
        try:
            r = run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "x@example.org", "ed25519", "sign", env=env)
            equal(r.returncode, 0, r.stderr)
            r = run(SRC + "/scripts/release", "sign", tarball, "x@example.org", env=env)
            equal(r.returncode, 0, r.stderr)
            equal(run("gpg", "--verify", tarball + ".asc", tarball, env=env).returncode, 0)
            refused(run(SRC + "/scripts/release", "sign", tarball, "y@example.org", env=env), "gpg did not sign with 'y@example.org'")
        finally:
            run("gpgconf", "--kill", "gpg-agent", env=env)


@test
def make_release_asks_checks_and_signs_in_that_order():
    out = run("make", "-n", "-C", BUILD, "release", "RELEASE_CHECK=Makefile", "RELEASE_KEY=k").stdout
    asked, checked, signed = (re.search(p, out) for p in (r"release ready \d+\.\d+\.\d+\n", r"make +Makefile",
                                                         r"release sign libcomponent-[\d.]+\.tar\.xz 'k'"))
    need(asked and checked and signed and asked.start() < checked.start() < signed.start(), out)


main()
