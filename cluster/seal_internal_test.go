package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
)

// Nobody connects to a server of this process without its token, which stays when it starts again, and which no error
// shows.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	s, err := serve("127.0.0.1:0", dir)
	require.NoError(t, err)
	address := s.ClientURL()
	host := bare(address)
	turned := 0
	for _, url := range []string{host, strings.Replace(host, "//", "//guess@", 1),
		strings.Replace(host, "//", "//kelvin:"+s.token+"@", 1)} {
		_, err := nats.Connect(url)
		require.ErrorIs(t, err, nats.ErrAuthorization, url)
		err = Work(t.Context(), url)
		require.ErrorIs(t, err, nats.ErrAuthorization, url)
		require.NotContains(t, err.Error(), s.token)
		turned++
	}
	nc, err := nats.Connect(address)
	require.NoError(t, err)
	require.Equal(t, []byte(s.token), secretOf(address, nc.Opts))
	nc.Close()
	s.close()
	again, err := serve(strings.TrimPrefix(host, "nats://"), dir)
	require.NoError(t, err)
	require.Equal(t, address, again.ClientURL())
	again.close()
	given, err := serve("secret@127.0.0.1:0", t.TempDir())
	require.NoError(t, err)
	require.Contains(t, given.ClientURL(), "nats://secret@127.0.0.1:")
	given.close()
	t.Logf("seen: %d connections without the token turned away", turned)
}

// A token comes from the address or the options; what client and workers may have different ones of is none.
func TestSecretOf(t *testing.T) {
	for address, want := range map[string]string{"nats://abc@host:1": "abc", "nats://host:1, nats://abc@host:2": "abc",
		"nats://user:abc@host:1": "token", "nats://host:1": "token"} {
		require.Equal(t, want, string(secretOf(address, nats.Options{Token: "token"})), address)
	}
	require.Empty(t, secretOf("nats://host", nats.Options{}))
}

// packed are rows of one number and one statistic.
func packed(x ...float64) (raw []byte) {
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return raw
}

// A result is taken as it was sealed, by this run's token for this task, with the draws that were asked for, and in no
// other way.
func TestForgedResults(t *testing.T) {
	key := []byte("token")
	ask := task{Run: "run", Number: 3, draws: 2, Options: settings{Chains: 2}}
	good := outcome{Draws: "x", Stats: []string{"lp"}, Lengths: []int{2, 2}, Small: packed(1, 0, 2, 0, 3, 0, 4, 0)}
	sealed := func(by task, key []byte, o outcome) []byte {
		raw, err := by.seal(key, o)
		require.NoError(t, err)
		return raw
	}
	o, err := ask.unseal(key, sealed(ask, key, good))
	require.NoError(t, err)
	require.Equal(t, good, *o)
	require.NoError(t, ask.check(o))

	plain, err := json.Marshal(good)
	require.NoError(t, err)
	other := ask
	other.Number = 4
	flipped := sealed(ask, key, good)
	flipped[len(flipped)-3] ^= 1
	with := func(change func(o *outcome)) []byte {
		o := good
		change(&o)
		return sealed(ask, key, o)
	}
	signed := fmt.Sprintf("%s%s", ask.mac(key, []byte("{")), "{")
	cases := []struct {
		raw  []byte
		want string
	}{
		{plain, "is not signed"}, {nil, "is not signed"}, {sealed(ask, []byte("guess"), good), "is not signed"},
		{sealed(ask, nil, good), "is not signed"}, {sealed(other, key, good), "is not signed"}, {flipped, "is not signed"},
		{[]byte(signed), "unexpected end of JSON"},
		{with(func(o *outcome) { o.Lengths = []int{1, 1, 2} }), "it has 3 chains, and 2 were asked for"},
		{with(func(o *outcome) { o.Lengths = []int{2, 1 << 60} }), "chain 1 has 1152921504606846976 draws, and 2 were"},
		{with(func(o *outcome) { o.Lengths = []int{-5, 2} }), "chain 0 has -5 draws"},
		{with(func(o *outcome) { o.Draws, o.Lengths = "", nil }), "it has 0 chains, and 2 were asked for"},
		{with(func(o *outcome) { o.Blocks = 1 << 40 }), "0 checksums of 1099511627776 blocks"},
	}
	for _, c := range cases {
		o, err := ask.unseal(key, c.raw)
		if err == nil {
			err = ask.check(o)
		}
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "the result of task 3 is refused")
	}
	t.Logf("seen: %d forged results refused", len(cases))
}

// Numbers that no run gives, too few and too many bytes, and blocks that are not those of the worker are errors.
func TestForgedDraws(t *testing.T) {
	read := func(raw []byte) error {
		o := &outcome{Stats: []string{"lp"}, Lengths: []int{2}}
		return unpackRows(5, 1, o, func() ([]byte, error) { return raw, nil },
			func(int, []float64, []float64) error { return nil })
	}
	require.NoError(t, read(packed(1, math.NaN(), 2, math.Inf(-1)))) // statistics may be anything
	require.ErrorIs(t, read(packed(1, 0, math.NaN(), 0)), infer.ErrNonFinite)
	require.ErrorContains(t, read(packed(1, 0, math.Inf(1), 0)), "element 0 of draw 1 of chain 5 is +Inf")
	require.ErrorContains(t, read(packed(1, 0, 2, 0, 3, 0)), "16 bytes more than the draws have")
	require.ErrorContains(t, read(packed(1, 0, 2)), "cut off")
	sum := sha256.Sum256(packed(1))
	o := &outcome{Sums: [][]byte{sum[:]}}
	require.NoError(t, o.intact(0, packed(1)))
	require.ErrorContains(t, o.intact(0, packed(2)), "block 0 is not the one")
}
