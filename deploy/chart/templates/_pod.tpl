{{- /* Names, labels and the pod that all workloads share. */ -}}

{{- define "commission.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* Arguments: root, component. Pods have no further labels: a label of the chart's version would restart all pods. */ -}}
{{- define "commission.labels" -}}
app.kubernetes.io/name: commission
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "commission.metadata" -}}
name: {{ include "commission.name" .root }}-{{ .component }}
labels:
  {{- include "commission.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* Arguments: root, and image (tools or explorer) if it is not that of the service. */ -}}
{{- define "commission.image" -}}
{{- $image := .root.Values.image }}
{{- $repository := $image.repository }}
{{- $digest := $image.digest }}
{{- if and $digest $image.tag }}
{{- fail "image.digest and image.tag: give one of them. The digest would count, and the tag would say another version" }}
{{- end }}
{{- with .image }}
{{- $own := index $image . }}
{{- $repository = $own.repository | default (printf "%s-%s" $repository .) }}
{{- if ne (empty $digest) (empty $own.digest) }}
{{- $reasons := dict "tools" "A command of another version than the service can refuse its documents, or change them"
  "explorer" "A page of another version than the API can misread its answers" }}
{{- fail (printf "image.digest and image.%s.digest: give both or none. %s" . (get $reasons .)) }}
{{- end }}
{{- $digest = $own.digest }}
{{- end }}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /*
The specification of a pod. Arguments: root, component, process (its values), command, and if it has them: kafka,
elasticsearch (whether it talks to them), own (settings that the chart sets), ports, probes, preStopSeconds, account (the
component whose service account it uses), image (tools or explorer: it has an image of its own).
*/ -}}
{{- define "commission.pod" -}}
{{- $settings := dict }}
{{- $files := dict }}
{{- range $uses, $values := dict "kafka" .root.Values.kafka "elasticsearch" .root.Values.elasticsearch }}
{{- if index $ $uses }}
{{- $settings = merge (dict) $values.settings $settings }}
{{- $files = merge (dict) $values.files $files }}
{{- end }}
{{- end }}
{{- $settings = merge (dict) (.own | default dict) .process.settings $settings }}
{{- $files = merge (dict) .process.files $files }}
serviceAccountName: {{ include "commission.name" .root }}-{{ .account | default .component }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  # The files of secrets belong to this group.
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .process.scheduling }}
{{ toYaml . }}
{{- end }}
# A stop takes at most 10 seconds, the drain of the API included.
terminationGracePeriodSeconds: {{ add (.preStopSeconds | default 0) 15 }}
containers:
  - name: {{ .component }}
    image: {{ include "commission.image" . }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: {{ toJson .command }}
    {{- if or $settings $files }}
    env:
      {{- range $name, $value := $settings }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
      {{- range $name, $source := $files }}
      - name: {{ $name }}
        value: /etc/commission/{{ $name }}
      {{- end }}
    {{- end }}
    {{- with .ports }}
    ports:
      {{- range $name, $port := . }}
      - name: {{ $name }}
        containerPort: {{ $port }}
      {{- end }}
    {{- end }}
    {{- with .probes }}
    # A process must be able to do its work once. Until then, its pod replaces no pod of the release before.
    startupProbe:
      httpGet: { path: {{ .startup }}, port: {{ .port | default "admin" }} }
      periodSeconds: 5
      timeoutSeconds: 5
      # An hour: a start waits for the end of an outage of Kafka or Elasticsearch.
      failureThreshold: 720
    # Then readiness is about this process alone: while Elasticsearch is away, the pod still gives clear refusals.
    readinessProbe:
      httpGet: { path: {{ .readiness }}, port: {{ .port | default "admin" }} }
      periodSeconds: 2
      timeoutSeconds: 2
      failureThreshold: 2
    livenessProbe:
      httpGet: { path: {{ .liveness }}, port: {{ .port | default "admin" }} }
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    {{- end }}
    {{- with .preStopSeconds }}
    lifecycle:
      preStop:
        sleep: { seconds: {{ . }} }
    {{- end }}
    resources:
      {{- toYaml .process.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    {{- if or $files .process.volumeMounts }}
    volumeMounts:
      {{- if $files }}
      - name: files
        mountPath: /etc/commission
        readOnly: true
      {{- end }}
      {{- with .process.volumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- end }}
{{- with .process.sidecars }}
# Beside the container, until it ends: a Job is complete although its sidecars run on.
initContainers:
  {{- range . }}
  {{- list (merge (dict "restartPolicy" "Always") .) | toYaml | nindent 2 }}
  {{- end }}
{{- end }}
{{- if or $files .process.volumes }}
volumes:
  {{- if $files }}
  - name: files
    projected:
      # Read by the group; Kubernetes writes a changed Secret into it.
      defaultMode: 0440
      sources:
        {{- range $name, $source := $files }}
        {{- if $source.audience }}
        - serviceAccountToken:
            audience: {{ $source.audience | quote }}
            expirationSeconds: {{ $source.expirationSeconds | default 3600 | int }}
            path: {{ $name }}
        {{- else }}
        - {{ if $source.secret }}secret{{ else }}configMap{{ end }}:
            name: {{ $source.secret | default $source.configMap }}
            items:
              - key: {{ $source.key | quote }}
                path: {{ $name }}
        {{- end }}
        {{- end }}
  {{- end }}
  {{- with .process.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The template of a pod, with its labels. Arguments as above, and pod: the specification. */ -}}
{{- define "commission.template" -}}
metadata:
  labels:
    {{- include "commission.labels" . | nindent 4 }}
  {{- with .process.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "commission.pod" . | nindent 2 }}
{{- end }}

{{- /* Pods of one component are on different nodes and zones, if there are several. */ -}}
{{- define "commission.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "commission.labels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}

{{- define "commission.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "commission.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "commission.labels" . | nindent 6 }}
{{- end }}

{{- /* Seconds until every load balancer has heard of the deletion of a pod. One outside of the cluster asks the nodes. */ -}}
{{- define "commission.preStopSeconds" -}}
{{ .preStopSeconds | default (eq .service.type "ClusterIP" | ternary 5 30) }}
{{- end }}

{{- /* Every process has a service account of its own: an identity for Kafka, or for a cloud provider. */ -}}
{{- define "commission.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "commission.metadata" . | nindent 2 }}
  {{- $annotations := merge (dict) (.hooks | default dict) .process.serviceAccount.annotations }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{- /*
Arguments: root, component, ports: for each open port its peers, or everybody. And egress, if it is not that of all pods.
*/ -}}
{{- define "commission.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "commission.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "commission.labels" . | nindent 6 }}
  {{- $egress := .egress | default .root.Values.networkPolicy.egress }}
  policyTypes: [Ingress{{ if $egress }}, Egress{{ end }}]
  {{- $rules := list }}
  {{- range .ports }}
  {{- $ports := list (dict "protocol" "TCP" "port" .port) }}
  {{- /* Without `from`, a rule allows everybody. So a port without peers has no rule. */ -}}
  {{- if .peers }}
  {{- $rules = append $rules (dict "from" .peers "ports" $ports) }}
  {{- else if .everybody }}
  {{- $rules = append $rules (dict "ports" $ports) }}
  {{- end }}
  {{- end }}
  ingress: {{ $rules | toJson }}
  {{- with $egress }}
  egress:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
