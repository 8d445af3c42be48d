"""quick_tests.py - the quick tests of whole programs, with a library that a part has been taken away from.

The tests find that library, and a tree without the part's files and row, in folders of links that are
laid over the real ones.  A test that is about the part is left out: it stands in the part's room, or it,
or what it uses of its file, names the part.  All others have to pass.
"""
import ast
import concurrent.futures
import contextlib
import glob
import os
import re
import sys

from harness import BUILD, SRC, need, run, tempdir, text_of

# Seconds each, of every room that uses the library.
FILES = ("components/entry_points", "components/golden_options", "components/health", "components/profiling",
         "components/reload", "components/when_enabled", "custom/custom", "examples/controllers", "heap/sample_identity",
         "http/protocol", "labels/labels", "model/unloaded_plugins", "serve/auth", "serve/fork", "serve/profile_write",
         "serve/rates", "serve/start_stop", "threads/goroutine")


def laid_over(top, to, changes):
    """A folder of links to what is in another, but {path: what it leads to, or None: gone}."""
    os.makedirs(to)
    for name in os.listdir(top):
        below = {p[len(name) + 1:]: v for p, v in changes.items() if p.startswith(name + "/")}
        if name in changes:
            if changes[name]:
                os.symlink(changes[name], os.path.join(to, name))
        elif below:
            laid_over(os.path.join(top, name), os.path.join(to, name), below)
        else:
            os.symlink(os.path.join(top, name), os.path.join(to, name))


def real_programs():
    """{libtool's script: the program}, in the build: a script would set a path of its own."""
    for path in glob.glob(os.path.join(BUILD, "*", "*", ".libs", "*")) + glob.glob(os.path.join(BUILD, "*", ".libs", "*")):
        script = os.path.join(os.path.dirname(os.path.dirname(path)), os.path.basename(path))
        if os.access(script, os.X_OK) and not path.endswith(".so") and os.path.isfile(script):
            yield os.path.relpath(script, BUILD), path


@contextlib.contextmanager
def tree_without(gone, library, table, left):
    """The environment of tests that use this library.  left: the table's text without the part's rows."""
    with tempdir() as d:
        with open(d + "/table", "w") as f:
            f.write(left)
        changes = dict(real_programs())
        changes.update({"components/.libs/libcomponent.so" + end: library for end in ("", ".0", ".0.0.0")})
        laid_over(SRC, d + "/source", dict({path: None for path in gone}, **{table: d + "/table"}))
        laid_over(BUILD, d + "/build", changes)
        yield dict(os.environ, top_srcdir=d + "/source", top_builddir=d + "/build",
                   LD_LIBRARY_PATH=d + "/build/components/.libs", MAKEFLAGS="")


def tests_in(path):
    """{name of a test: its text, and that of what it uses of its file}"""
    text = text_of(path)
    said, uses, tests = {}, {}, []
    for node in ast.parse(text).body:
        names = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else \
            [t.id for to in getattr(node, "targets", ()) for t in ast.walk(to) if isinstance(t, ast.Name)]
        for name in names:
            said[name] = said.get(name, "") + ast.get_source_segment(text, node)
            uses.setdefault(name, set()).update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", None) in ("test", "beside") for d in node.decorator_list):
            tests.append(node.name)
    found = {}
    for test in tests:
        seen, todo = set(), [test]
        while todo:
            name = todo.pop()
            if name in said and name not in seen:
                seen.add(name)
                todo += uses[name]
        found[test] = "\n".join(said[name] for name in sorted(seen))
    return found


def others_pass(words, rooms, env, turn):
    """Runs the quick tests that do not match words (a pattern) and are in none of the rooms: all of them with
    TEST_STRESS, two files otherwise, others at each turn."""
    files = [f for f in FILES if f.split("/")[0] not in rooms]
    if not os.environ.get("TEST_STRESS"):
        files = [files[(turn * 2 + i) % len(files)] for i in range(2)]

    def passes(path, names):
        r = run(sys.executable, os.path.join(env["top_srcdir"], path), *names, env=env, timeout=900)
        return "%s fails without it:\n%s%s\n" % (path, r.stdout[-3000:], r.stderr[-1000:]) if r.returncode != 0 else ""

    chosen = {path: [name for name, text in tests_in(path).items() if not re.search(words, text)]
              for path in ("tests/%s.t" % f for f in files)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [pool.submit(passes, path, names) for path, names in chosen.items() if names]
    wrong = "".join(s.result() for s in said)
    need(not wrong, wrong)
