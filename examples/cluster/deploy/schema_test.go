package deploy_test

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// types are the fields of Kubernetes's schemas that the files use: "!" is a field that the schema or these files
// require, "=" its kind. A field that is not in the table is an error, so that a misspelt one is.
var types = map[string]string{
	"batch/v1 Job":        "apiVersion!=string kind!=string metadata!=Meta spec!=JobSpec",
	"v1 Service":          "apiVersion!=string kind!=string metadata!=Meta spec!=ServiceSpec",
	"v1 ConfigMap":        "apiVersion!=string kind!=string metadata!=Meta data!=map",
	"apps/v1 StatefulSet": "apiVersion!=string kind!=string metadata!=Meta spec!=SetSpec",
	"Meta":                "name!=string labels=map",
	"TemplateMeta":        "labels!=map",
	"JobSpec": "completionMode!=string completions!=int parallelism!=int backoffLimitPerIndex!=int " +
		"maxFailedIndexes=int podFailurePolicy=FailurePolicy template!=Template",
	"FailurePolicy": "rules!=[]Rule",
	"Rule":          "action!=string onPodConditions!=[]Condition",
	"Condition":     "type!=string status!=string",
	"ServiceSpec":   "clusterIP=string selector!=map ports!=[]ServicePort",
	"ServicePort":   "name!=string port!=int targetPort=string",
	"SetSpec": "serviceName!=string replicas=int selector!=Selector template!=Template " +
		"volumeClaimTemplates=[]Claim",
	"Selector":           "matchLabels!=map",
	"Template":           "metadata!=TemplateMeta spec!=PodSpec",
	"Claim":              "metadata!=Meta spec!=ClaimSpec",
	"ClaimSpec":          "accessModes!=[]string resources!=ClaimResources",
	"ClaimResources":     "requests!=map",
	"PodSecurityContext": "runAsNonRoot=bool runAsUser=int runAsGroup=int fsGroup=int",
	"PodSpec": "restartPolicy!=string automountServiceAccountToken=bool terminationGracePeriodSeconds=int " +
		"securityContext!=PodSecurityContext containers!=[]Container volumes=[]Volume",
	"Container": "name!=string image!=string imagePullPolicy=string args=[]string env=[]Env ports=[]Port " +
		"readinessProbe=Probe livenessProbe=Probe resources!=Resources securityContext!=SecurityContext " +
		"volumeMounts=[]Mount",
	"Env":             "name!=string value=string valueFrom=Source",
	"Source":          "secretKeyRef=Key fieldRef=Field",
	"Key":             "name!=string key!=string",
	"Field":           "fieldPath!=string",
	"Port":            "name!=string containerPort!=int",
	"Probe":           "httpGet!=Get initialDelaySeconds=int periodSeconds=int failureThreshold=int",
	"Get":             "path!=string port!=string",
	"Resources":       "requests!=map limits!=map",
	"SecurityContext": "readOnlyRootFilesystem=bool allowPrivilegeEscalation=bool",
	"Mount":           "name!=string mountPath!=string readOnly=bool",
	"Volume":          "name!=string configMap=Named secret=Secret emptyDir=Empty",
	"Named":           "name!=string",
	"Secret":          "secretName!=string",
	"Empty":           "sizeLimit=string",
}

// conform compares a node with the table.
func conform(n *yaml.Node, kind, path string) error {
	if element, ok := strings.CutPrefix(kind, "[]"); ok {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			return fmt.Errorf("line %d: %s must be a list that is not empty", n.Line, path)
		}
		for i, item := range n.Content {
			if err := conform(item, element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if kind == "string" || kind == "int" || kind == "bool" {
		tag := map[string]string{"string": "!!str", "int": "!!int", "bool": "!!bool"}[kind]
		if n.Kind != yaml.ScalarNode || n.Tag != tag {
			return fmt.Errorf("line %d: %s must be a %s", n.Line, path, kind)
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: %s must be a map", n.Line, path)
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if fields[name] != nil {
			return fmt.Errorf("line %d: %s.%s is there twice", n.Content[i].Line, path, name)
		}
		fields[name] = n.Content[i+1]
		if kind == "map" {
			if err := conform(n.Content[i+1], "string", path+"."+name); err != nil {
				return err
			}
		}
	}
	if kind == "map" {
		return nil
	}
	table, ok := types[kind]
	if !ok {
		return fmt.Errorf("line %d: %s is a %q, which is not in the table", n.Line, path, kind)
	}
	for _, field := range strings.Fields(table) {
		name, kind, _ := strings.Cut(field, "=")
		name, required := strings.CutSuffix(name, "!")
		value := fields[name]
		delete(fields, name)
		if value == nil && required {
			return fmt.Errorf("line %d: %s.%s is missing", n.Line, path, name)
		}
		if value != nil {
			if err := conform(value, kind, path+"."+name); err != nil {
				return err
			}
		}
	}
	for name := range fields {
		return fmt.Errorf("line %d: %s.%s is no field of %s", n.Line, path, name, kind)
	}
	return nil
}
