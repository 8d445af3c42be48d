# tests of the project itself: what the documents say, the build, what is installed and packed
WHOLE_TESTS += %D%/adding.t %D%/agent_build.t %D%/bench.t %D%/coming_from.t %D%/count.t %D%/deploy.t %D%/docs.t %D%/exports.t %D%/getting_started.t %D%/install.t %D%/kubernetes.t \
	%D%/manuals.t %D%/other_arch.t %D%/porting.t %D%/release.t %D%/systemd.t
