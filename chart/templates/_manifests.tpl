{{/*
The chart has no copy of manifests/: chart/manifests is a link to it. The templates read its objects, and change in them
what a release and its values change. What kustomize applies and what this chart installs can therefore not drift apart.
*/}}

{{/* Paths of the files that a kustomization of manifests/ lists, one a line; folders are followed. */}}
{{- define "volcano.files" -}}
{{- $folder := .folder -}}
{{- $root := .root -}}
{{- range (fromYaml ($root.Files.Get (printf "%s/kustomization.yaml" $folder))).resources }}
{{- $path := clean (printf "%s/%s" $folder .) }}
{{- if hasSuffix ".yaml" $path }}
{{ $path }}
{{- else }}
{{- include "volcano.files" (dict "root" $root "folder" $path) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of an object of manifests/ in this release: volcano-scheduler becomes RELEASE-scheduler. */}}
{{- define "volcano.name" -}}
{{- regexReplaceAll "^volcano-" .name (printf "%s-" .root.Release.Name) -}}
{{- end }}

{{/*
The objects of a folder of manifests/ that belong to a component, as documents of YAML. Components are scheduler,
controllers, admission, policies, users, and shared for everything else. Definitions and the namespace belong to none.
*/}}
{{- define "volcano.objects" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- range splitList "\n" (include "volcano.files" (dict "root" $root "folder" .folder)) }}
{{- if and . (not (hasPrefix "manifests/crds/" .)) }}
{{- $path := . }}
{{- $text := $root.Files.Get $path | required (printf "the chart lacks %s" $path) }}
{{- range regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml . }}
{{- with $object.Error }}{{ fail (printf "%s cannot be read: %s" $path .) }}{{ end }}
{{- /* In JSON, where the namespace stands between quotes: in YAML, a namespace such as 123 or true would be no text. */}}
{{- $object = fromJson (replace "volcano-system" $root.Release.Namespace (toJson $object)) }}
{{- if and $object.kind (eq (include "volcano.component" (dict "object" $object "path" $path)) $component) (include "volcano.wanted" (dict "root" $root "object" $object "component" $component)) }}
{{- include "volcano.object" (dict "root" $root "object" $object "component" $component) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "volcano.component" -}}
{{- $kind := .object.kind -}}
{{- $name := .object.metadata.name -}}
{{- if eq $kind "Namespace" -}}
none
{{- else if hasPrefix "manifests/users/" .path -}}
users
{{- else if contains "AdmissionPolicy" $kind -}}
policies
{{- else if hasPrefix "volcano-scheduler" $name -}}
scheduler
{{- else if hasPrefix "volcano-controller" $name -}}
controllers
{{- else if hasPrefix "volcano-admission" $name -}}
admission
{{- else -}}
shared
{{- end -}}
{{- end }}

{{/*
Not empty if the release wants an object: a webhook whose path is enabled, a policy of a kind that is switched on. In
kube-system, the quota would limit the critical pods of everybody, and every cluster admits them there.
*/}}
{{- define "volcano.wanted" -}}
{{- $custom := .root.Values.custom -}}
{{- $kind := .object.kind -}}
{{- if eq .component "users" -}}
yes
{{- else if hasPrefix "ValidatingAdmissionPolicy" $kind -}}
{{- if $custom.vap_enable -}}yes{{- end -}}
{{- else if hasPrefix "MutatingAdmissionPolicy" $kind -}}
{{- if $custom.map_enable -}}yes{{- end -}}
{{- else if eq $kind "ResourceQuota" -}}
{{- if ne .root.Release.Namespace "kube-system" -}}yes{{- end -}}
{{- else if and (hasSuffix "WebhookConfiguration" $kind) $custom.enabled_admissions -}}
{{- $path := (first .object.webhooks).clientConfig.service.path -}}
{{- if has $path (splitList "," (nospace $custom.enabled_admissions)) -}}yes{{- end -}}
{{- else -}}
yes
{{- end -}}
{{- end }}

{{/* Changes an object in place: its names, its labels, and what values say about its kind. */}}
{{- define "volcano.object" -}}
{{- $root := .root -}}
{{- $object := .object -}}
{{- $metadata := $object.metadata -}}
{{- if not (or (has .component (list "policies" "users")) (hasSuffix "WebhookConfiguration" $object.kind)) -}}
{{- $_ := set $metadata "name" (include "volcano.name" (dict "root" $root "name" $metadata.name)) -}}
{{- end -}}
{{- with $root.Values.custom.common_labels -}}
{{- $_ := set $metadata "labels" (merge ($metadata.labels | default dict) .) -}}
{{- end -}}
{{- if eq $object.kind "Deployment" -}}
{{- include "volcano.deployment" . -}}
{{- else if has $object.kind (list "ClusterRoleBinding" "RoleBinding") -}}
{{- range append $object.subjects $object.roleRef -}}
{{- $_ := set . "name" (include "volcano.name" (dict "root" $root "name" .name)) -}}
{{- end -}}
{{- else if eq $object.kind "Role" -}}
{{- include "volcano.role" . -}}
{{- else if eq $object.kind "ConfigMap" -}}
{{- include "volcano.configuration" . -}}
{{- else if eq $object.kind "Service" -}}
{{- with $root.Values.service -}}
{{- with .ipFamilyPolicy -}}{{- $_ := set $object.spec "ipFamilyPolicy" . -}}{{- end -}}
{{- with .ipFamilies -}}{{- $_ := set $object.spec "ipFamilies" . -}}{{- end -}}
{{- end -}}
{{- else if hasSuffix "WebhookConfiguration" $object.kind -}}
{{- include "volcano.webhooks" . -}}
{{- else if and (eq .component "policies") (hasSuffix "AdmissionPolicy" $object.kind) -}}
{{- include "volcano.selected" (dict "root" $root "selects" $object.spec.matchConstraints) -}}
{{- end -}}
{{- end }}

{{/* Objects that the programs make themselves keep their names; those that the chart makes are named by release. */}}
{{- define "volcano.role" -}}
{{- $root := .root -}}
{{- range .object.rules -}}
{{- if .resourceNames -}}
{{- $names := list -}}
{{- range .resourceNames -}}
{{- if hasSuffix "-configmap" . -}}
{{- $names = append $names (include "volcano.name" (dict "root" $root "name" .)) -}}
{{- else -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "resourceNames" $names -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "volcano.configuration" -}}
{{- $override := get .root.Values.custom (printf "%s_config_override" (trimSuffix "s" .component)) -}}
{{- if $override -}}
{{- range $file := keys .object.data -}}
{{- $_ := set $.object.data $file $override -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Where API servers find the webhooks, and in which namespaces they ask them. */}}
{{- define "volcano.webhooks" -}}
{{- $root := .root -}}
{{- range .object.webhooks -}}
{{- $service := .clientConfig.service -}}
{{- $_ := set $service "name" (include "volcano.name" (dict "root" $root "name" $service.name)) -}}
{{- if $root.Values.custom.webhook_url -}}
{{- $_ := set . "clientConfig" (dict "url" (printf "%s%s" (trimSuffix "/" $root.Values.custom.webhook_url) $service.path)) -}}
{{- end -}}
{{- include "volcano.selected" (dict "root" $root "selects" .) -}}
{{- end -}}
{{- end }}

{{- define "volcano.selected" -}}
{{- $selector := .selects.namespaceSelector -}}
{{- if $selector -}}
{{- with .root.Values.custom.webhooks_namespace_selector_expressions -}}
{{- $_ := set $selector "matchExpressions" (concat $selector.matchExpressions .) -}}
{{- end -}}
{{- end -}}
{{- end }}
