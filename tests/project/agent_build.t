#!/usr/bin/env python3
"""agent_build.t - where configure finds no archives for the agent, or is told to do without, it builds none and says so."""
import atexit
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

HOME = tempfile.mkdtemp(prefix="component-agent-build-")
atexit.register(shutil.rmtree, HOME, True)
HINT = "; scripts/agent-archives makes what --with-agent-archives=DIR takes"


def configured(name, *words):
    """What the summary says of the agent, and the Makefile.  What one run has tried the next one knows."""
    if os.path.exists(os.path.join(SRC, "config.status")):
        raise Skip("the tree itself is configured")
    folder = os.path.join(HOME, name)
    os.mkdir(folder)
    r = run("sh", os.path.join(SRC, "configure"), "-q", "--disable-dependency-tracking", "--cache-file=%s/cache" % HOME, "CC=" + CC, "CXX=" + CXX,
            *words, cwd=folder)
    equal(r.returncode, 0, r.stdout[-3000:] + r.stderr[-3000:])
    said, = re.findall(r"^  agent +(.*)$", r.stdout, re.M)
    return said, text_of(os.path.join(folder, "Makefile"))


def targets(makefile):
    """What of it make would see as the agent: a variable, or the head of a rule."""
    return re.findall(r"^PRELOAD(?:_CORE)? = .*|^\$\(PRELOAD(?:_CORE)?\):", makefile, re.M)


@test
def without_agent_archives_it_builds_no_agent_and_says_so():
    said, makefile = configured("without", "--without-agent-archives")
    equal(said, "none: --without-agent-archives" + HINT)
    equal(targets(makefile), [])
    need(re.search(r"^#PRELOAD = components/preload/libcomponent-preload\.so$", makefile, re.M), "has it another name?")
    need(re.search(r"^AGENT_ARCHIVES = *$", makefile, re.M), "archives of no agent")


@test
def archives_that_are_not_there_are_named():
    empty = os.path.join(HOME, "empty")
    os.mkdir(empty)
    said, makefile = configured("missing", "--with-agent-archives=" + empty)
    equal(said, "none: missing: libevent_core.a libevent_extra.a libz.a libprotobuf-c.a" + HINT)
    equal(targets(makefile), [])


@test
def this_build_has_what_its_makefile_says():
    there = os.path.exists(BUILD + "/components/preload/libcomponent-preload.so")
    equal(len(targets(text_of(os.path.join(BUILD, "Makefile")))), 4 if there else 0)


main()
