// Package deploy_test checks the files of a deployment as far as one machine can: their fields and what they say of
// each other, the configuration of the server by a server, and the unit by systemd.
package deploy_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// object is what the tests below read of a Kubernetes object.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Spec       struct {
		CompletionMode           string `yaml:"completionMode"`
		Completions, Parallelism int
		ServiceName              string `yaml:"serviceName"`
		Ports                    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []container
				Volumes       []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
					Secret    struct {
						SecretName string `yaml:"secretName"`
					}
				}
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type container struct {
	Image string
	Args  []string
	Env   []struct {
		Name      string
		ValueFrom struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Resources    struct{ Requests, Limits map[string]string }
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

func objects(t *testing.T) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, file := range []string{"nats.yaml", "workers.yaml"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var n yaml.Node
			err := d.Decode(&n)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			var o object
			require.NoError(t, n.Decode(&o), file)
			require.NoError(t, conform(n.Content[0], o.APIVersion+" "+o.Kind, file))
			require.NotContains(t, all, o.Kind)
			all[o.Kind] = o
		}
	}
	return all
}

// A misspelt, a doubled, a missing field and one of another kind are errors.
func TestConform(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nlabel: {}":      "is no field",
		"name: a\nname: b":        "twice",
		"labels: {a: b}":          "name is missing",
		"name: 1":                 "must be a string",
		"name: a\nlabels: {a: 1}": "must be a string",
		"name: a\nlabels: {a: b}": "",
	} {
		var n yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(text), &n))
		err := conform(n.Content[0], "Meta", "x")
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
}

func TestObjects(t *testing.T) {
	all := objects(t)
	job, set, service := all["Job"].Spec, all["StatefulSet"].Spec, all["Service"]
	require.Equal(t, "Indexed", job.CompletionMode)
	require.Equal(t, job.Completions, job.Parallelism, "a worker never completes: all of them run at once")
	// Kubernetes allows backoffLimitPerIndex and podFailurePolicy with Never alone, and in a StatefulSet Always alone.
	require.Equal(t, "Never", job.Template.Spec.RestartPolicy)
	require.Equal(t, "Always", set.Template.Spec.RestartPolicy)
	require.Equal(t, service.Metadata.Name, set.ServiceName)
	server, worker := set.Template.Spec.Containers[0], job.Template.Spec.Containers[0]

	ports, config := map[string]int{}, all["ConfigMap"].Data["nats.conf"]
	for _, p := range server.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range service.Spec.Ports {
		require.Equal(t, p.Port, ports[p.TargetPort])
		require.Contains(t, config, "port: "+strconv.Itoa(p.Port))
	}
	require.Contains(t, worker.Args[2], "@"+service.Metadata.Name+":"+strconv.Itoa(ports["client"]))

	for _, o := range []object{all["Job"], all["StatefulSet"]} {
		pod, volumes := o.Spec.Template.Spec, map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
			if v.ConfigMap.Name != "" && v.ConfigMap.Name != all["ConfigMap"].Metadata.Name {
				require.Contains(t, page(t), "create configmap "+v.ConfigMap.Name+" ")
			}
			if v.Secret.SecretName != "" {
				require.Contains(t, page(t), "create secret tls "+v.Secret.SecretName+" ")
			}
		}
		for _, v := range o.Spec.VolumeClaimTemplates {
			volumes[v.Metadata.Name] = true
		}
		c := pod.Containers[0]
		for _, m := range c.VolumeMounts {
			require.True(t, volumes[m.Name], m.Name)
			delete(volumes, m.Name)
		}
		require.Empty(t, volumes, "volumes that are not mounted")
		require.NotEmpty(t, c.Resources.Requests["cpu"])
		require.NotEmpty(t, c.Resources.Limits["memory"])
		for _, e := range c.Env {
			if key := e.ValueFrom.SecretKeyRef; key.Name != "" {
				require.Regexp(t, "create secret generic "+key.Name+" .*--from-literal="+key.Key+"=", page(t))
			}
		}
	}

	// The files of the server are on its volume, and its version is that of the tests.
	require.Contains(t, config, "store_dir: "+server.VolumeMounts[0].MountPath+"\n")
	module, err := os.ReadFile("../../../go.mod")
	require.NoError(t, err)
	_, version, _ := strings.Cut(server.Image, ":")
	require.Contains(t, string(module), "github.com/nats-io/nats-server/v2 v"+version+"\n")
}

// page is the page that says how the secrets are made, without its line breaks.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/cluster-sizes.md")
	require.NoError(t, err)
	return regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(text), "")
}

// The flags that the image, the Job and the unit give are flags of the example.
func TestFlags(t *testing.T) {
	flags := map[string]bool{}
	file, err := parser.ParseFile(token.NewFileSet(), "../main.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		name, literal := call.Args[0].(*ast.BasicLit)
		if x, isName := f.X.(*ast.Ident); ok && literal && isName && x.Name == "flag" {
			flags[strings.Trim(name.Value, `"`)] = true
		}
		return true
	})
	image, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	unit, err := os.ReadFile("kelvin-worker@.service")
	require.NoError(t, err)
	given := append([]string{}, objects(t)["Job"].Spec.Template.Spec.Containers[0].Args...)
	given = append(given, regexp.MustCompile(`(?m)^CMD .*$`).FindString(string(image)),
		regexp.MustCompile(`(?m)^ExecStart=.*$`).FindString(string(unit)))
	for _, g := range given {
		for _, m := range regexp.MustCompile(`(?:^|[ "])-([a-z]+)`).FindAllStringSubmatch(g, -1) {
			require.True(t, flags[m[1]], m[1])
			flags[m[1]+" given"] = true
		}
	}
	require.True(t, flags["worker given"] && flags["nats given"])

	// The last stage begins with nothing, so that no compiler is in it, and copies from a stage that exists.
	stages := regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`).FindAllStringSubmatch(string(image), -1)
	require.Len(t, stages, 2)
	require.Equal(t, "scratch", stages[1][1])
	require.Contains(t, string(image), "COPY --from="+stages[0][2]+" ")
	require.Contains(t, string(image), `ENTRYPOINT ["/app/cluster"]`)
}

func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	text, err := os.ReadFile("kelvin-worker@.service")
	require.NoError(t, err)
	const binary = "/usr/local/bin/kelvin-cluster" // is not installed here
	require.Contains(t, string(text), "ExecStart="+binary+" ")
	path := filepath.Join(t.TempDir(), "kelvin-worker@1.service")
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(binary), []byte("/bin/true")), 0o600))
	out, err := exec.Command(analyze, "verify", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "kelvin-worker", "%s", out)
}
