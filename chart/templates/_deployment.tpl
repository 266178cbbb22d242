{{/* Changes a Deployment of manifests/ in place: what values say about a component's pods. */}}
{{- define "volcano.deployment" -}}
{{- $root := .root -}}
{{- $custom := $root.Values.custom -}}
{{- $of := trimSuffix "s" .component -}}
{{- $deployment := .object -}}
{{- $template := $deployment.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $here := dict "root" $root "of" $of -}}
{{- $_ := set $pod "serviceAccountName" (include "volcano.name" (dict "root" $root "name" $pod.serviceAccountName)) -}}
{{- $_ := set $container "name" (include "volcano.name" (dict "root" $root "name" $container.name)) -}}
{{- range $pod.volumes -}}
{{- with .configMap -}}{{- $_ := set . "name" (include "volcano.name" (dict "root" $root "name" .name)) -}}{{- end -}}
{{- end -}}

{{- if $custom.high_availability_enable -}}{{- include "volcano.highlyAvailable" (dict "deployment" $deployment "of" $of) -}}{{- end -}}
{{- $replicas := get $custom (printf "%s_replicas" $of) -}}
{{- if not (has (toString $replicas) (list "" "<nil>")) -}}{{- $_ := set $deployment.spec "replicas" (int $replicas) -}}{{- end -}}

{{- $_ := set $container "image" (include "volcano.image" (dict "root" $root "image" $container.image)) -}}
{{- with $root.Values.basic.image_pull_policy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- with $root.Values.basic.image_pull_secret -}}
{{- $_ := set $pod "imagePullSecrets" (list (dict "name" .)) -}}
{{- end -}}

{{- with get $custom (printf "%s_labels" $of) -}}
{{- $_ := set $deployment.metadata "labels" (merge $deployment.metadata.labels .) -}}
{{- end -}}
{{- range list (get $custom (printf "%s_podLabels" $of)) $custom.common_labels -}}
{{- if . -}}{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels .) -}}{{- end -}}
{{- end -}}

{{- with or (get $custom (printf "%s_affinity" $of)) $custom.default_affinity -}}
{{- $_ := set $pod "affinity" (mergeOverwrite (deepCopy $pod.affinity) .) -}}
{{- end -}}
{{- with or (get $custom (printf "%s_tolerations" $of)) $custom.default_tolerations -}}{{- $_ := set $pod "tolerations" . -}}{{- end -}}
{{- with or (get $custom (printf "%s_ns" $of)) $custom.default_ns -}}
{{- $_ := set $pod "nodeSelector" (mergeOverwrite (deepCopy $pod.nodeSelector) .) -}}
{{- end -}}
{{- with get $custom (printf "%s_resources" $of) -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with or (get $custom (printf "%s_sc" $of)) $custom.default_sc -}}
{{- $_ := set $pod "securityContext" (mergeOverwrite (deepCopy $pod.securityContext) .) -}}
{{- end -}}
{{- with or (get $custom (printf "%s_main_csc" $of)) $custom.default_csc -}}
{{- $_ := set $container "securityContext" (mergeOverwrite (deepCopy $container.securityContext) .) -}}
{{- end -}}

{{- if ne $root.Release.Name "volcano" -}}
{{- include "volcano.env" (dict "container" $container "name" "HELM_RELEASE_NAME" "value" $root.Release.Name) -}}
{{- end -}}
{{- if ne $root.Release.Namespace "volcano-system" -}}
{{- include "volcano.env" (dict "container" $container "name" "KUBE_POD_NAMESPACE" "value" $root.Release.Namespace) -}}
{{- end -}}
{{- range $line := splitList "\n" (include "volcano.flags" (dict "root" $root "of" $of)) -}}
{{- if $line -}}{{- include "volcano.setFlag" (dict "container" $container "flag" $line) -}}{{- end -}}
{{- end -}}
{{- if and (eq $of "admission") $custom.webhook_url -}}
{{- $url := printf "--webhook-url=%s" (trimSuffix "/" $custom.webhook_url) -}}
{{- include "volcano.setFlag" (dict "container" $container "flag" $url "instead" "--webhook-service-name") -}}
{{- end -}}
{{- with get $custom (printf "%s_extra_args" $of) -}}
{{- $_ := set $container "args" (concat $container.args .) -}}
{{- end -}}
{{- if and (eq $of "admission") $root.Values.basic.admission_port -}}
{{- range $container.ports -}}
{{- if eq .name "webhooks" -}}{{- $_ := set . "containerPort" (int $root.Values.basic.admission_port) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What manifests/components/high-availability does; tests/chart compares the two. */}}
{{- define "volcano.highlyAvailable" -}}
{{- $spec := .deployment.spec -}}
{{- if ne .of "admission" -}}
{{- $_ := set $spec "replicas" 2 -}}
{{- $_ := set $spec "strategy" (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxUnavailable" 1 "maxSurge" 1)) -}}
{{- include "volcano.setFlag" (dict "container" (first $spec.template.spec.containers) "flag" "--leader-elect=true") -}}
{{- end -}}
{{- $apart := dict "topologyKey" "kubernetes.io/hostname" "maxSkew" 1 "minDomains" 2 "whenUnsatisfiable" "DoNotSchedule" -}}
{{- $pods := dict "labelSelector" $spec.selector "matchLabelKeys" (list "pod-template-hash") -}}
{{- $_ := set $spec.template.spec "topologySpreadConstraints" (list (merge $apart $pods)) -}}
{{- end }}

{{/* One image has all programs. Volcano's values for images name images of Volcano, so none of them counts here. */}}
{{- define "volcano.image" -}}
{{- $image := .root.Values.image | default dict -}}
{{- $name := $image.name | default (first (splitList ":" .image)) -}}
{{- $tag := $image.tag | default .root.Chart.AppVersion -}}
{{- if hasPrefix "sha256:" (toString $tag) -}}{{ printf "%s@%s" $name $tag }}{{- else -}}{{ printf "%s:%s" $name (toString $tag) }}{{- end -}}
{{- end }}

{{/* Sets a variable of a container; one that is there already is replaced. */}}
{{- define "volcano.env" -}}
{{- $name := .name -}}
{{- $others := list -}}
{{- range .container.env -}}
{{- if ne .name $name -}}{{- $others = append $others . -}}{{- end -}}
{{- end -}}
{{- $_ := set .container "env" (append $others (dict "name" .name "value" .value)) -}}
{{- end }}

{{/*
Sets one flag of a container, given as --name=value; one that is there already, or the one that it stands instead of, is
replaced where it is.
*/}}
{{- define "volcano.setFlag" -}}
{{- $flag := .flag -}}
{{- $name := .instead | default (first (splitList "=" $flag)) -}}
{{- $found := false -}}
{{- $args := list -}}
{{- range .container.args -}}
{{- if or (eq . $name) (hasPrefix (printf "%s=" $name) .) -}}
{{- if not $found -}}{{- $args = append $args $flag -}}{{- end -}}
{{- $found = true -}}
{{- else -}}
{{- $args = append $args . -}}
{{- end -}}
{{- end -}}
{{- if not $found -}}{{- $args = append $args $flag -}}{{- end -}}
{{- $_ := set .container "args" $args -}}
{{- end }}

{{/*
The flags that values and the release ask for, one a line. What is not set keeps the flag of manifests/; 0 means not set, as
in Volcano's chart.
*/}}
{{- define "volcano.flags" -}}
{{- $custom := .root.Values.custom -}}
{{- $release := .root.Release -}}
{{- $of := .of -}}
{{- $given := dict -}}

{{- if ne $release.Namespace "volcano-system" -}}
{{- $_ := set $given "--leader-elect-resource-namespace" $release.Namespace -}}
{{- end -}}
{{- if ne $release.Name "volcano" -}}
{{- $lease := dict "scheduler" "scheduler" "controller" "controller-manager" "admission" "webhook-manager" -}}
{{- $_ := set $given "--leader-elect-resource-name" (printf "%s-%s" $release.Name (get $lease $of)) -}}
{{- end -}}

{{- $_ := set $given "--scheduler-name" $custom.scheduler_name -}}
{{- $_ := set $given "--leader-elect" $custom.leader_elect_enable -}}
{{- $_ := set $given "--enable-metrics" (get $custom (printf "%s_metrics_enable" $of)) -}}
{{- $_ := set $given "--feature-gates" (nospace (get $custom (printf "%s_feature_gates" $of) | default "")) -}}
{{- $_ := set $given "--log-level" (include "volcano.logLevel" (get $custom (printf "%s_log_level" $of))) -}}
{{- if eq $of "scheduler" -}}
{{- $_ := set $given "--schedule-period" $custom.scheduler_schedule_period -}}
{{- $_ := set $given "--plugins-dir" $custom.scheduler_plugins_dir -}}
{{- $_ := set $given "--ignored-provisioners" $custom.ignored_provisioners -}}
{{- $_ := set $given "--scheduler-sharding-mode" $custom.scheduler_sharding_mode -}}
{{- $_ := set $given "--scheduler-sharding-name" $custom.scheduler_sharding_name -}}
{{- else if eq $of "controller" -}}
{{- $_ := set $given "--kube-api-qps" $custom.controller_kube_api_qps -}}
{{- $_ := set $given "--kube-api-burst" $custom.controller_kube_api_burst -}}
{{- $_ := set $given "--worker-threads" $custom.controller_worker_threads -}}
{{- $_ := set $given "--worker-threads-for-gc" $custom.controller_worker_threads_for_gc -}}
{{- $_ := set $given "--worker-threads-for-podgroup" $custom.controller_worker_threads_for_podgroup -}}
{{- $_ := set $given "--controllers" (include "volcano.controllers" .root) -}}
{{- else -}}
{{- $_ := set $given "--enabled-admission" (nospace ($custom.enabled_admissions | default "")) -}}
{{- $_ := set $given "--webhook-namespace" $release.Namespace -}}
{{- $_ := set $given "--webhook-service-name" (printf "%s-admission-service" $release.Name) -}}
{{- $_ := set $given "--port" (get .root.Values.basic "admission_port") -}}
{{- end -}}

{{- range $flag, $value := $given -}}
{{- /* Numbers of a file are floating-point: toString alone would write 1000000 as 1e+06. */}}
{{- $text := toString $value -}}
{{- if and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) -}}{{- $text = toString (int64 $value) -}}{{- end -}}
{{- if not (has $text (list "" "<nil>" "0")) }}
{{ printf "%s=%s" $flag $text }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A level's name, from the name itself or from a number of klog, as Volcano's values have it. */}}
{{- define "volcano.logLevel" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else if not (kindIs "invalid" .) -}}
{{ ternary "debug" "info" (gt (int .) 4) }}
{{- end -}}
{{- end }}

{{- define "volcano.controllers" -}}
{{- $chosen := .Values.custom.controller_enabled_controllers -}}
{{- if eq (toString .Values.custom.hypernode_controller_mode) "disabled" -}}
{{ printf "%s,-hyperNode-controller" ($chosen | default "*") }}
{{- else if $chosen -}}
{{ $chosen }}
{{- end -}}
{{- end }}
