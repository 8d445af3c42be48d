# hooks/: the functions that stand before libc's, and the core's side of them.
noinst_LTLIBRARIES += %D%/libhooks.la
%C%_libhooks_la_SOURCES = %D%/abi.h %D%/address_owner.h %D%/free_signal.c %D%/free_signal.h %D%/hidden_frames.c \
	%D%/hidden_frames.h %D%/signal_masks.c %D%/signal_masks.h %D%/thread_events.c %D%/thread_events.h \
	%D%/weak_references.c %D%/which_core.c %D%/which_core.h
%C%_libhooks_la_CPPFLAGS = $(OUR_WAITS) $(INC_HOOKS)

# object/: one relocatable object, whatever CFLAGS say: every call of malloc goes
# through it.  The thread-local part must not be allocated at its first use, and the
# fast path is counted in instructions.  What every call runs through must not lie across
# a cache line: that costs 3 % of malloc and free.
HOOKS_DIR = %D%/object
HOOKS_CFLAGS = -std=gnu11 -D_GNU_SOURCE -I$(srcdir)/%D% $(INC_ARCH) $(WARN_CFLAGS) $(PREFIX_MAP) $(CPPFLAGS) $(CFLAGS) \
	-O2 -g -fPIC -ftls-model=initial-exec -fvisibility=hidden -fno-builtin -fno-lto -fno-plt \
	-fno-stack-protector -fno-sanitize=all -fno-profile-arcs -fno-test-coverage \
	-fasynchronous-unwind-tables -U_FORTIFY_SOURCE
HOOKS_FAST_CFLAGS = -fomit-frame-pointer -falign-functions=32
HOOKS_DEPS = $(srcdir)/%D%/local.mk $(srcdir)/profiler/unwind/arch/$(ARCH_DIR)/arch_hooks.h $(srcdir)/%D%/abi.h $(srcdir)/%D%/object/object.h $(srcdir)/%D%/object/lookup.h
HOOKS_FILES = %D%/object/malloc.c %D%/object/operators.c %D%/object/threads.c %D%/object/table.c \
	%D%/object/cold.c %D%/object/next.c %D%/object/lookup.c %D%/object/waits.c %D%/object/waits_cold.c \
	%D%/object/calls.c %D%/object/calls_cold.c %D%/object/signals.c %D%/object/sysv_signal.c %D%/object/frames.c
if ARCH_HOOKS
HOOKS_OBJECTS = %D%/object/frames_start.o %D%/object/malloc.o %D%/object/operators.o %D%/object/threads.o %D%/object/table.o \
	%D%/object/cold.o %D%/object/next.o %D%/object/lookup.o %D%/object/waits.o %D%/object/waits_cold.o \
	%D%/object/calls.o %D%/object/calls_cold.o %D%/object/signals.o %D%/object/sysv_signal.o %D%/object/frames_end.o
# The agent's, where waits.c says HOOKS_SHARED, object.h and malloc.c HOOKS_PROGRAM; the same in the same places.
HOOKS_SHARED_OBJECTS = %D%/object/frames_start.o %D%/object/shared_malloc.o %D%/object/operators.o \
	%D%/object/threads.o %D%/object/table.o \
	%D%/object/cold.o %D%/object/next.o %D%/object/lookup.o %D%/object/shared_waits.o %D%/object/waits_cold.o \
	%D%/object/calls.o %D%/object/calls_cold.o %D%/object/signals.o %D%/object/sysv_signal.o %D%/object/frames_end.o
else
# Says to the core that nothing is hooked.
HOOKS_OBJECTS = %D%/object/stub.o
HOOKS_SHARED_OBJECTS = %D%/object/stub.o
endif
EXTRA_DIST += $(HOOKS_FILES) %D%/object/stub.c %D%/object/object.h %D%/object/lookup.h

AM_V_HOOKS = $(AM_V_HOOKS_@AM_V@)
AM_V_HOOKS_ = $(AM_V_HOOKS_@AM_DEFAULT_V@)
AM_V_HOOKS_0 = @echo "  HOOKS   " $@;
HOOKS_CC = $(AM_V_HOOKS)$(MKDIR_P) $(HOOKS_DIR) && $(CC) $(HOOKS_CFLAGS)

%D%/object/malloc.o: %D%/object/malloc.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -DHOOKS_PROGRAM -c -o $@ $(srcdir)/%D%/object/malloc.c
%D%/object/shared_malloc.o: %D%/object/malloc.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -c -o $@ $(srcdir)/%D%/object/malloc.c
%D%/object/operators.o: %D%/object/operators.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -c -o $@ $(srcdir)/%D%/object/operators.c
%D%/object/threads.o: %D%/object/threads.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/threads.c
%D%/object/table.o: %D%/object/table.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/table.c
%D%/object/lookup.o: %D%/object/lookup.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/lookup.c
%D%/object/cold.o: %D%/object/cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/object/cold.c
%D%/object/waits.o: %D%/object/waits.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -DHOOKS_PROGRAM -c -o $@ $(srcdir)/%D%/object/waits.c
%D%/object/shared_waits.o: %D%/object/waits.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -DHOOKS_SHARED -c -o $@ $(srcdir)/%D%/object/waits.c
%D%/object/waits_cold.o: %D%/object/waits_cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/object/waits_cold.c
%D%/object/calls.o: %D%/object/calls.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/calls.c
%D%/object/calls_cold.o: %D%/object/calls_cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/object/calls_cold.c
%D%/object/signals.o: %D%/object/signals.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/signals.c
%D%/object/sysv_signal.o: %D%/object/sysv_signal.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/sysv_signal.c
%D%/object/next.o: %D%/object/next.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/object/next.c
%D%/object/frames_start.o: %D%/object/frames.c
	$(HOOKS_CC) -DFRAMES_LABEL=hooks_frames_start -c -o $@ $(srcdir)/%D%/object/frames.c
%D%/object/frames_end.o: %D%/object/frames.c
	$(HOOKS_CC) -DFRAMES_LABEL=hooks_frames_end -c -o $@ $(srcdir)/%D%/object/frames.c
%D%/object/stub.o: %D%/object/stub.c $(HOOKS_DEPS)
	$(HOOKS_CC) -c -o $@ $(srcdir)/%D%/object/stub.c

# Names that only these files share become local: none of them can meet the daemon's.
%D%/object/component_hooks.o: $(HOOKS_OBJECTS)
	$(AM_V_HOOKS)$(CC) $(CFLAGS) -fno-lto -fno-sanitize=all -nostdlib -r -o $@ $(HOOKS_OBJECTS) && \
		$(OBJCOPY) --localize-hidden $@
%D%/object/component_hooks_shared.o: $(HOOKS_SHARED_OBJECTS)
	$(AM_V_HOOKS)$(CC) $(CFLAGS) -fno-lto -fno-sanitize=all -nostdlib -r -o $@ $(HOOKS_SHARED_OBJECTS) && \
		$(OBJCOPY) --localize-hidden $@
%D%/libcomponent_hooks_nonshared.a: %D%/object/component_hooks.o
	$(AM_V_HOOKS)rm -f $@ && $(AR) cr $@ %D%/object/component_hooks.o
%D%/libcomponent_hooks.a: %D%/object/stub.o
	$(AM_V_HOOKS)rm -f $@ && $(AR) cr $@ %D%/object/stub.o
# -ldl: where dlsym is not in libc itself (glibc before 2.34).  ldconfig takes a lib*.so
# that is text for a broken library and complains on each run, but for these three words.
# A name without -l is looked for beside this file first: meson names the file and no -L.
%D%/libcomponent_hooks.so: Makefile
	$(AM_V_HOOKS)$(MKDIR_P) %D% && \
		echo '/* GNU ld script. For executables: hooks, linked in whole. */ INPUT(libcomponent_hooks_nonshared.a AS_NEEDED(-ldl))' > $@

hooks_DATA += %D%/libcomponent_hooks_nonshared.a %D%/libcomponent_hooks.a %D%/libcomponent_hooks.so
CLEANFILES += $(hooks_DATA) $(HOOKS_OBJECTS) $(HOOKS_SHARED_OBJECTS) %D%/object/stub.o \
	%D%/object/component_hooks.o %D%/object/component_hooks_shared.o
