#!/usr/bin/env python3
"""A row with a variable of the wrong type does not compile; the right ones do, as C11
and as C++17, without a warning."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import CC, CXX, SRC, equal, main, test

INCLUDE = ["-I" + os.path.join(SRC, d) for d in ("flags/include", "libcomponent/base/include", "libcomponent/include", "profiler/include", "components/include")]
TYPES = {
    "BOOL": "bool", "INT": "int64_t", "NUMBER": "double", "SIZE": "uint64_t", "DURATION": "int64_t",
    "STRING": "const char *", "LIST": "struct component_list", "ENUM": "int", "ADDRESS": "const char *",
}
OTHERS = ["bool", "int", "unsigned", "int32_t", "int64_t", "uint64_t", "double", "float", "char *", "const char *",
          "char", "struct component_list", "const bool", "const int64_t", "volatile int", "enum { A, B }"]


def compiles(compiler, flags, text, suffix):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "rows" + suffix)
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([*compiler.split(), *flags, *INCLUDE, "-fsyntax-only", path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode == 0, done.stdout


def table(kind, ctype):
    extra = ", .choices = choices" if kind == "ENUM" else ""
    return """#include <component/flags.h>
extern const char *const choices[];
extern %s variable;
%s variable;
extern const struct component_flag rows[];
const struct component_flag rows[] = {
	COMPONENT_FLAG_%s("x", &variable, "Help.", .section = "S"%s),
	COMPONENT_FLAG_END
};
""" % (ctype, ctype, kind, extra)


def compilers():
    yield CC
    if shutil.which("clang") and "clang" not in CC:
        yield "clang"


@test
def every_kind_of_row_compiles_with_its_type_as_strict_c11():
    for cc in compilers():
        for kind, ctype in TYPES.items():
            ok, text = compiles(cc, ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"], table(kind, ctype), ".c")
            assert ok, "%s %s: %s" % (cc, kind, text)


@test
def every_wrong_type_is_a_compile_error_without_any_warning_flag():
    for cc in compilers():
        for kind, right in TYPES.items():
            # All rows of a kind in one file: as many errors as wrong types.
            same = {right, "int32_t"} if right == "int" else {right}
            wrong = [t for t in OTHERS if t not in same]
            text = "#include <component/flags.h>\n"
            for i, ctype in enumerate(wrong):
                text += "static %s v%d;\nstatic const struct component_flag r%d = COMPONENT_FLAG_%s(\"x\", &v%d, \"Help.\");\n" % (
                    ctype, i, i, kind, i)
            ok, out = compiles(cc, ["-std=gnu11", "-w", "-ferror-limit=0" if "clang" in cc else "-ftrack-macro-expansion=0"], text, ".c")
            assert not ok
            lines = {int(l.split(":")[1]) for l in out.splitlines() if ": error: " in l and "rows.c:" in l}
            # Line 2 holds the first variable, line 3 its row, and so on.
            equal(lines, {3 + 2 * i for i in range(len(wrong))})


@test
def a_variable_instead_of_its_address_is_a_compile_error():
    for kind, ctype in TYPES.items():
        ok, _ = compiles(CC, ["-std=gnu11", "-w"], table(kind, ctype).replace("&variable", "variable"), ".c")
        assert not ok, kind


@test
def the_header_alone_compiles_as_c11_and_as_cxx17():
    text = "#include <component/flags.h>\n"
    for cc in compilers():
        ok, out = compiles(cc, ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"], text, ".c")
        assert ok, out
    for cxx in [CXX] + (["clang++"] if shutil.which("clang++") else []):
        ok, out = compiles(cxx, ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"], text, ".cc")
        assert ok, out


@test
def the_compilers_error_names_the_type_that_the_row_wants():
    # C says it with the name of a type made for that, C++ with the function's parameter.
    words = {"const char *": "const_char_pointer", "struct component_list": "component_list"}
    for kind, ctype in TYPES.items():
        for cc in compilers():
            ok, out = compiles(cc, ["-std=c11"], table(kind, "float"), ".c")
            assert not ok and re.search(r"wants_the_address_of_an?_%s\b" % words.get(ctype, ctype), out), out
        ok, out = compiles(CXX, ["-std=c++17"], table(kind, "float"), ".cc")
        wanted = ctype.replace("struct ", "").rstrip(" *")
        assert not ok and re.search(r"(%s|long (unsigned )?int) ?\*" % re.escape(wanted), out), out


SPECS = """#include <component/component.h>
static bool loud;
static int64_t workers = 4;
static int color;
static const char *const colors[] = { "red", "green", nullptr };
static const struct component_flag rows[] = {
	COMPONENT_FLAG_BOOL("loud", &loud, "Shout.", .letter = 'l', .section = "S"),
	COMPONENT_FLAG_INT("workers", &workers, "Threads.", .max = 64, .min = 1),
	COMPONENT_FLAG_ENUM("color", &color, "Colour.", .choices = colors),
	COMPONENT_FLAG_STRING("none", nullptr, "Nothing else."),
	COMPONENT_FLAG_END
};
const struct component_spec *spec(void);
const struct component_flags_spec *flags_spec(void);
const struct component_spec *spec(void)
{
	static const struct component_spec s = COMPONENT_SPEC(.name = "x", .version = "1", .flags = rows);
	return &s;
}
const struct component_flags_spec *flags_spec(void)
{
	static const struct component_flags_spec s = COMPONENT_FLAGS_SPEC(.name = "x");
	return &s;
}
"""


@test
def rows_and_specs_compile_in_every_cxx_without_a_warning():
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    for cxx in [CXX] + (["clang++"] if shutil.which("clang++") else []):
        for standard in "c++17", "c++20":
            for kind, ctype in TYPES.items():
                ok, out = compiles(cxx, ["-std=" + standard] + strict, table(kind, ctype), ".cc")
                assert ok, out
            ok, out = compiles(cxx, ["-std=" + standard] + strict, SPECS, ".cc")
            assert ok, out


INITS = """#include <component/controller.h>
#include <component/profiler.h>
static struct component_profiler_options         profiler = COMPONENT_PROFILER_OPTIONS_INIT;
static const struct component_queue_options      queue = COMPONENT_QUEUE_OPTIONS_INIT;
static const struct { struct component_profile_write_options o; } within = { COMPONENT_PROFILE_WRITE_OPTIONS_INIT };
int sum(void);
int sum(void)
{
	struct component_profiler_options own = COMPONENT_PROFILER_OPTIONS_INIT;

	own.address = "127.0.0.1:0";
	return (int)(profiler.max_requests + queue.burst + own.max_seconds) + within.o.debug;
}
"""
CONSTANTS = """
static constexpr component_profiler_options at_once = COMPONENT_PROFILER_OPTIONS_INIT;
static_assert(at_once.size == sizeof(at_once) && at_once.max_seconds == 7200 && !at_once.address &&
	at_once.heap_rate_bytes == 524288 && at_once.symbol_memory_bytes == 67108864, "by name, and before any code runs");
"""


@test
def options_are_initialised_by_name_in_every_c_and_cxx_without_a_warning():
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    for cc in compilers():
        for standard in "c11", "gnu17":
            ok, out = compiles(cc, ["-std=" + standard] + strict, INITS, ".c")
            assert ok, out
    for cxx in [CXX] + (["clang++"] if shutil.which("clang++") else []):
        for standard in "c++11", "c++17", "c++20":
            text = INITS + (CONSTANTS if standard != "c++11" else "")
            ok, out = compiles(cxx, ["-std=" + standard] + strict, text, ".cc")
            assert ok, out


DURATIONS = """#include <component/flags.h>
static int64_t every = COMPONENT_SECONDS(90), wait = 2 * COMPONENT_MINUTES(1 + 1);
static const struct component_flag rows[] = {
	COMPONENT_FLAG_DURATION("every", &every, "Help.", .section = "S", .min = COMPONENT_MICROSECONDS(1), .max = COMPONENT_HOURS(292 * 24 * 365)),
	COMPONENT_FLAG_END
};
ASSERT(sizeof(COMPONENT_SECONDS((char)1)) == 8, "as wide as it must be, whatever is given");
ASSERT(COMPONENT_SECONDS(9223372036) == 9223372036000000000, "up to 292 years");
ASSERT(COMPONENT_MINUTES(1) == 60 * COMPONENT_SECONDS(1) && COMPONENT_HOURS(-1) == -3600000000000, "signed");
ASSERT(COMPONENT_MILLISECONDS(7u) == 7000 * COMPONENT_MICROSECONDS(1) && COMPONENT_MICROSECONDS(3) == 3000, "exact");
const char *name(int64_t ns);
const char *name(int64_t ns)
{
	switch (ns) {
	case COMPONENT_SECONDS(1):
		return rows[0].name;
	default:
		return every + wait == ns ? "both" : "";
	}
}
"""


@test
def durations_are_constants_of_64_bits_in_c11_and_cxx17_and_take_no_fraction():
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Werror"]
    for compiler, standard, said, suffix in [(cc, "c11", "_Static_assert", ".c") for cc in compilers()] + [(CXX, "c++17", "static_assert", ".cc")]:
        ok, out = compiles(compiler, ["-std=" + standard, "-DASSERT=" + said] + strict, DURATIONS, suffix)
        assert ok, out
        for wrong in ("1.5", "0.5f"):
            ok, _ = compiles(compiler, ["-std=" + standard, "-w"], "#include <component/flags.h>\nstatic int64_t half = COMPONENT_SECONDS(%s);\n" % wrong, suffix)
            assert not ok, (compiler, wrong)
        ok, _ = compiles(compiler, ["-std=" + standard] + strict, "#include <component/flags.h>\nint64_t far = COMPONENT_HOURS(2562048);\n", suffix)
        assert not ok, "beyond what 64 bits hold"


@test
def tables_work_in_cxx_too_and_wrong_types_do_not():
    for kind, ctype in TYPES.items():
        ok, out = compiles(CXX, ["-std=c++17", "-Wall", "-Werror"], table(kind, ctype), ".cc")
        assert ok, "%s: %s" % (kind, out)
        for wrong in ("float", "char"):
            ok, _ = compiles(CXX, ["-std=c++17", "-w"], table(kind, wrong), ".cc")
            assert not ok, (kind, wrong)


main()
