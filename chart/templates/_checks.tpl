{{/* What is wrong with the values, one sentence a line. The schema has found wrong types and unknown names before. */}}
{{- define "volcano.problems" -}}
{{- $custom := .Values.custom -}}
{{- range $path, $why := (fromYaml (.Files.Get "volcano-values.yaml")).missing }}
{{- if eq (toString (get $custom (trimPrefix "custom." $path))) "true" }}
{{ $path }} is true, but {{ $why }}: set it to false, or leave it out.
{{- end }}
{{- end }}
{{- /* The longest name is RELEASE-controllers-service, and a Service may have 63 characters. */}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,41}[a-z0-9])?$" .Release.Name) }}
The release is named {{ .Release.Name }}, and the names of its Services begin so: choose a name of at most 43 lower-case letters, digits and dashes that begins with a letter.
{{- end }}
{{- if eq (toString $custom.leader_elect_enable) "false" }}
{{- range $of := list "scheduler" "controller" }}
{{- if gt (int (get $custom (printf "%s_replicas" $of))) 1 }}
custom.{{ $of }}_replicas is {{ get $custom (printf "%s_replicas" $of) }} and custom.leader_elect_enable is false, so all of them would work at once: set custom.leader_elect_enable to true.
{{- end }}
{{- end }}
{{- if $custom.high_availability_enable }}
custom.high_availability_enable is true and custom.leader_elect_enable is false, so both replicas would work at once: set custom.leader_elect_enable to true.
{{- end }}
{{- end }}
{{- if $custom.high_availability_enable }}
{{- range $value := list "scheduler_replicas" "controller_replicas" "admission_replicas" }}
{{- if has (toString (get $custom $value)) (list "0" "1") }}
custom.high_availability_enable is true and custom.{{ $value }} is {{ get $custom $value }}, so nobody would stand by: set it to 2 or more, or to null.
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.basic.admission_port }}
{{- if has (int .) (list 8082 11251) }}
basic.admission_port is {{ . }}, where the webhook manager serves {{ ternary "metrics" "its health" (eq (int .) 8082) }}: choose another port.
{{- end }}
{{- end }}
{{- if $custom.enabled_admissions }}
{{- $known := splitList "\n" (include "volcano.paths" .) }}
{{- range splitList "," (nospace $custom.enabled_admissions) }}
{{- if not (has . $known) }}
custom.enabled_admissions names {{ . | quote }}, and no webhook has this path: choose from {{ without $known "" | uniq | sortAlpha | join ", " }}.
{{- end }}
{{- end }}
{{- end }}
{{- range $value, $needed := dict "map_enable" "1.36" "vap_enable" "1.33" }}
{{- if and (get $custom $value) (semverCompare (printf "<%s-0" $needed) $.Capabilities.KubeVersion.Version) }}
custom.{{ $value }} is true, and its policies need Kubernetes {{ $needed }} or later: this is {{ $.Capabilities.KubeVersion.Version }}. Set it to false, and use webhooks (custom.admission_enable).
{{- end }}
{{- end }}
{{- if and $custom.vap_queues_enable (not $custom.vap_enable) }}
custom.vap_queues_enable needs custom.vap_enable: set both to true.
{{- end }}
{{- end }}

{{/* The paths of all webhooks of manifests/, one a line. */}}
{{- define "volcano.paths" -}}
{{- range list "manifests/webhooks/configurations.yaml" "manifests/webhooks/pods/configurations.yaml" }}
{{- range regexSplit "(?m)^---$" ($.Files.Get .) -1 }}
{{- range (fromYaml .).webhooks }}
{{ .clientConfig.service.path }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Values of Volcano's chart that are set and not used: one paragraph for each reason. */}}
{{- define "volcano.unused" -}}
{{- $reasons := (fromYaml (.Files.Get "volcano-values.yaml")).unused -}}
{{- $used := list "custom.hypernode_controller_mode" -}}
{{- $set := dict -}}
{{- range $part := list "basic" "custom" -}}
{{- range $name, $value := get $.Values $part -}}
{{- if and $value (not (has (printf "%s.%s" $part $name) $used)) -}}
{{- $_ := set $set (printf "%s.%s" $part $name) true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $part := list "global" "jobflow" -}}
{{- if get $.Values $part -}}{{- $_ := set $set $part true -}}{{- end -}}
{{- end -}}
{{- $by := dict -}}
{{- range $path := keys $set | sortAlpha -}}
{{- range $known, $why := $reasons -}}
{{- if or (eq $known $path) (and (hasSuffix "*" $known) (hasPrefix (trimSuffix "*" $known) $path)) -}}
{{- $_ := set $by $why (append (get $by $why | default list) $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $why, $paths := $by }}
  {{ printf "%s: %s" (join ", " $paths) $why | wrapWith 74 "\n    " }}
{{- end }}
{{- end }}
