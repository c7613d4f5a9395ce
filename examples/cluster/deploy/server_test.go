package deploy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// certificate makes a certificate for the loopback address, which is its own authority.
func certificate(t *testing.T, crt, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nats"},
		DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(crt, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600))
}

// A server with the configuration of nats.yaml, but for paths and ports: without TLS or password nobody is let in, a
// worker does what cluster.Work does, and hands no tasks to others.
func TestServer(t *testing.T) {
	dir := t.TempDir()
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certificate(t, crt, key)
	t.Setenv("POD_NAME", "nats-0")
	t.Setenv("KELVIN_CLIENT_PASSWORD", "secret-of-client")
	t.Setenv("KELVIN_WORKER_PASSWORD", "secret-of-worker")
	config := objects(t)["ConfigMap"].Data["nats.conf"]
	for old, replacement := range map[string]string{"/etc/nats-tls": dir, "/data": filepath.Join(dir, "data"),
		"port: 4222": "port: -1", "http_port: 8222": "", "90GB": "1GB"} {
		require.Contains(t, config, old)
		config = strings.ReplaceAll(config, old, replacement)
	}
	path := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	o, err := server.ProcessConfigFile(path)
	require.NoError(t, err)
	o.Host, o.NoLog, o.NoSigs = "127.0.0.1", true, true
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	require.True(t, s.ReadyForConnections(30*time.Second))
	_, port, _ := strings.Cut(s.Addr().String(), ":")
	at := func(user string) string { return "tls://" + user + "localhost:" + port }

	// As in workers.yaml, Go's crypto/tls learns the authority by an environment variable.
	t.Setenv("SSL_CERT_FILE", crt)
	for _, user := range []string{"", "worker:wrong@"} {
		_, err := nats.Connect(at(user))
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	refused := make(chan error, 10)
	connect := func(user string) (*nats.Conn, jetstream.JetStream) {
		nc, err := nats.Connect(at(user), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			refused <- err
		}))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		return nc, js
	}
	_, client := connect("client:secret-of-client@")
	worker, own := connect("worker:secret-of-worker@")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	stream, err := client.CreateStream(ctx, jetstream.StreamConfig{Name: "KELVIN_TASKS",
		Subjects: []string{"kelvin.tasks.>"}, Retention: jetstream.WorkQueuePolicy})
	require.NoError(t, err)
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "workers",
		AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	_, err = client.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "KELVIN_run"})
	require.NoError(t, err)
	_, err = client.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "KELVIN_run"})
	require.NoError(t, err)
	_, err = client.CreateStream(ctx, jetstream.StreamConfig{Name: "KELVIN_DRAWS_run",
		Subjects: []string{"kelvin.pile.DRAWS.run.>"}, Retention: jetstream.WorkQueuePolicy, AllowDirect: true})
	require.NoError(t, err)
	_, err = client.Publish(ctx, "kelvin.tasks.run.000000", []byte("task"))
	require.NoError(t, err)

	tasks, err := own.Consumer(ctx, "KELVIN_TASKS", "workers")
	require.NoError(t, err)
	msg, err := tasks.Next()
	require.NoError(t, err)
	require.Equal(t, "task", string(msg.Data()))
	require.NoError(t, msg.InProgress())
	_, err = worker.SubscribeSync("kelvin.cancel.run")
	require.NoError(t, err)
	require.NoError(t, worker.Publish("kelvin.events.run", nil))
	keys, err := own.KeyValue(ctx, "KELVIN_run")
	require.NoError(t, err)
	_, err = keys.Create(ctx, "result.000000", []byte("{}"))
	require.NoError(t, err)
	_, err = own.ObjectStore(ctx, "KELVIN_run")
	require.NoError(t, err)
	const block = "kelvin.pile.DRAWS.run.000000.000001.result.000000.0"
	_, err = own.Publish(ctx, block, []byte("data"))
	require.NoError(t, err)
	pile, err := own.Stream(ctx, "KELVIN_DRAWS_run")
	require.NoError(t, err)
	got, err := pile.GetLastMsgForSubject(ctx, block)
	require.NoError(t, err)
	require.Equal(t, "data", string(got.Data))
	require.NoError(t, pile.Purge(ctx, jetstream.WithPurgeSubject("kelvin.pile.DRAWS.run.000000.>")))
	require.NoError(t, msg.DoubleAck(ctx))
	require.NoError(t, worker.Flush())
	require.Empty(t, refused)

	require.NoError(t, worker.Publish("kelvin.tasks.run.000001", []byte("task")))
	require.ErrorContains(t, <-refused, "Permissions Violation")
}
