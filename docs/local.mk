# docs/: what README.md points to.
EXTRA_DIST += %D%/controllers.md %D%/deadlock.md %D%/memory.md %D%/profiling.md %D%/operating.md %D%/flags.md %D%/api.md \
	%D%/hunts.md %D%/porting.md %D%/security.md %D%/versions.md
