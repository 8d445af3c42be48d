# deploy/: manifests, units and scrapers' configurations, installed among the documents that name them; and Debian's packages.
nobase_dist_doc_DATA += %D%/Containerfile %D%/config.alloy %D%/kubernetes/appstudio-controller.yaml %D%/kubernetes/backend-controller.yaml \
	%D%/kubernetes/backend-controller-annotation.yaml \
	%D%/kubernetes/backend-controller-env.yaml %D%/kubernetes/cluster-agent.yaml %D%/kubernetes/volume.yaml \
	%D%/kubernetes/base/appstudio-controller.yaml %D%/kubernetes/base/backend-controller.yaml %D%/kubernetes/base/cluster-agent.yaml \
	%D%/kubernetes/base/kustomization.yaml %D%/kubernetes/base/profiler.yaml %D%/kubernetes/base/volume.yaml \
	%D%/kubernetes/monitoring/kustomization.yaml %D%/kubernetes/monitoring/podmonitor.yaml \
	%D%/kubernetes/overlays/dev/kustomization.yaml %D%/kubernetes/overlays/dev/profiling.yaml \
	%D%/kubernetes/overlays/secured/kustomization.yaml %D%/kubernetes/overlays/secured/network.yaml \
	%D%/kubernetes/overlays/secured/profiling.yaml %D%/parca.yaml \
	%D%/systemd/appstudio-controller.service %D%/systemd/appstudio-controller.socket %D%/systemd/backend-controller.service \
	%D%/systemd/backend-controller.socket %D%/systemd/cluster-agent.service %D%/systemd/cluster-agent.socket \
	%D%/systemd/notify-reload.conf %D%/systemd/profiling.conf %D%/systemd/profiling-socket.conf %D%/systemd/sysusers.d/gitops.conf \
	%D%/systemd/tmpfiles.d/component.conf
EXTRA_DIST += %D%/debian/changelog %D%/debian/control %D%/debian/copyright %D%/debian/component-tools.install %D%/debian/libcomponent-common.install %D%/debian/libcomponent0.install \
	%D%/debian/libcomponent0.symbols %D%/debian/libcomponent-dev.install %D%/debian/libcomponent-dev.manpages %D%/debian/libcomponent-preload.install \
	%D%/debian/libcomponent-preload.lintian-overrides %D%/debian/libcomponent-preload.triggers \
	%D%/debian/not-installed %D%/debian/rules %D%/debian/source/format
