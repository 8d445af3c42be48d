# tests of the project itself: what the documents say, the build, what is installed and packed
WHOLE_TESTS += %D%/adding.t %D%/bench.t %D%/count.t %D%/deploy.t %D%/docs.t %D%/exports.t %D%/install.t %D%/other_arch.t %D%/release.t %D%/taking.t
EXTRA_DIST += deploy/kubernetes/appstudio-controller.yaml deploy/kubernetes/backend-controller.yaml \
	deploy/kubernetes/backend-controller-env.yaml deploy/kubernetes/cluster-agent.yaml deploy/kubernetes/volume.yaml \
	deploy/systemd/appstudio-controller.service deploy/systemd/backend-controller.service \
	deploy/systemd/cluster-agent.service deploy/systemd/profiling.conf
