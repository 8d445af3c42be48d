# deploy/: manifests, units and scrapers' configurations, installed among the documents that name them.
nobase_dist_doc_DATA += %D%/config.alloy %D%/kubernetes/appstudio-controller.yaml %D%/kubernetes/backend-controller.yaml \
	%D%/kubernetes/backend-controller-env.yaml %D%/kubernetes/cluster-agent.yaml %D%/kubernetes/volume.yaml %D%/parca.yaml \
	%D%/systemd/appstudio-controller.service %D%/systemd/backend-controller.service \
	%D%/systemd/cluster-agent.service %D%/systemd/profiling.conf
