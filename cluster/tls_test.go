package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{t: t, key: key, root: &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	der, err := x509.CreateCertificate(rand.Reader, a.root, a.root, &key.PublicKey, key)
	require.NoError(t, err)
	a.root, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

func (a *authority) sign(name string, use x509.ExtKeyUsage) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use}}, a.root, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

// A server that asks for certificates of the authority: a run and its workers that have them are served; a run without
// one, with one of another authority, or that does not trust the server's gets an error, and so does a worker.
func TestTLS(t *testing.T) {
	own, other := newAuthority(t), newAuthority(t)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: t.TempDir(), NoSigs: true, NoLog: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own.sign("server", x509.ExtKeyUsageServerAuth)},
			ClientCAs: own.pool(), ClientAuth: tls.RequireAndVerifyClientCert}})
	require.NoError(t, err)
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	require.True(t, s.ReadyForConnections(20*time.Second))

	p := program(t)
	o := infer.Options{Chains: 3, Warmup: 50, Draws: 50, Seed: 6, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.NoError(t, err)
	run := func(config *tls.Config) error {
		got, err := cluster.Sample(t.Context(), p, hmc.NUTS{}, cluster.Options{Options: o, Job: "schools", Workers: 2,
			URL: s.ClientURL(), NATS: []nats.Option{nats.Secure(config)}})
		if err == nil {
			identical(t, want, got)
		}
		return err
	}
	client := own.sign("client", x509.ExtKeyUsageClientAuth)
	require.NoError(t, run(&tls.Config{RootCAs: own.pool(), Certificates: []tls.Certificate{client}}))
	require.ErrorContains(t, run(&tls.Config{RootCAs: own.pool()}), "tls:")
	working, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	work := func(config *tls.Config) error { return cluster.Work(working, s.ClientURL(), nats.Secure(config)) }
	require.ErrorContains(t, work(&tls.Config{RootCAs: own.pool()}), "tls:")
	require.ErrorContains(t, work(&tls.Config{RootCAs: other.pool(), Certificates: []tls.Certificate{client}}),
		"certificate signed by unknown authority")
	require.NoError(t, working.Err(), "else the worker waited for a server that is there")
	stranger := other.sign("client", x509.ExtKeyUsageClientAuth)
	require.Error(t, run(&tls.Config{RootCAs: own.pool(), Certificates: []tls.Certificate{stranger}}))
	require.ErrorContains(t, run(&tls.Config{RootCAs: other.pool(), Certificates: []tls.Certificate{client}}),
		"certificate signed by unknown authority")
}

// A connection may break before the reason of the server's refusal has come: a worker and a client try again, and give
// the reason.
func TestRefusalThatComesLate(t *testing.T) {
	own := newAuthority(t)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: t.TempDir(), NoSigs: true, NoLog: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own.sign("server", x509.ExtKeyUsageServerAuth)},
			ClientCAs: own.pool(), ClientAuth: tls.RequireAndVerifyClientCert}})
	require.NoError(t, err)
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	require.True(t, s.ReadyForConnections(20*time.Second))

	config := nats.Secure(&tls.Config{RootCAs: own.pool()}) // no certificate of its own
	working, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, cluster.Work(working, breaking(t, s.Addr().String()), config), "tls:")
	require.NoError(t, working.Err(), "else the worker waited for a server that is there")
	_, err = cluster.Sample(t.Context(), program(t), hmc.NUTS{}, cluster.Options{
		Options: infer.Options{Chains: 1, Warmup: 5, Draws: 5, Observer: infer.Silent}, Job: "schools",
		URL: breaking(t, s.Addr().String()), NATS: []nats.Option{config}})
	require.ErrorContains(t, err, "tls:")
}

// breaking is the URL of a way to a server that breaks the first two connections at once.
func breaking(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			from, err := l.Accept()
			if err != nil {
				return
			}
			if n < 2 {
				_ = from.Close()
				continue
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				return
			}
			go func() { _, _ = io.Copy(server, from); _ = server.(*net.TCPConn).CloseWrite() }()
			go func() { _, _ = io.Copy(from, server); _ = from.Close() }()
		}
	}()
	return "tls://" + l.Addr().String()
}
