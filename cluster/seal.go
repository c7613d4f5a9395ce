package cluster

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
)

// secretOf is the token of a connection, which all that may connect share. It is nil for other credentials: client and
// workers may have different ones.
func secretOf(address string, o nats.Options) []byte {
	for one := range strings.SplitSeq(address, ",") {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.User != nil {
			if _, password := u.User.Password(); !password {
				return []byte(u.User.Username())
			}
		}
	}
	return []byte(o.Token)
}

var credentials = regexp.MustCompile(`//[^@/]*@`)

// bare is an address without its credentials, for errors.
func bare(address string) string { return credentials.ReplaceAllString(address, "//") }

// mac is the HMAC-SHA256 of the result of a task by the token, over the run and the number too, so that a result of
// another task is none of this one.
func (t task) mac(secret, text []byte) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(h, "%s %d %d ", t.Run, t.Number, len(text))
	_, _ = h.Write(text)
	return h.Sum(nil)
}

// seal is a result as the server keeps it: its signature, and then its JSON.
func (t task) seal(secret []byte, o outcome) ([]byte, error) {
	text, err := json.Marshal(o)
	return append(t.mac(secret, text), text...), err
}

func (t task) refused(why string, args ...any) error {
	return fmt.Errorf("the result of task %d is refused: %s", t.Number, fmt.Sprintf(why, args...))
}

// unseal reads a result, and refuses one that is not signed.
func (t task) unseal(secret, raw []byte) (*outcome, error) {
	if len(raw) < sha256.Size || !hmac.Equal(raw[:sha256.Size], t.mac(secret, raw[sha256.Size:])) {
		return nil, t.refused("it is not signed with the token of this run's connection: was it written by a stranger, or " +
			"by a worker that connects with another token?")
	}
	o := &outcome{}
	if err := json.Unmarshal(raw[sha256.Size:], o); err != nil {
		return nil, t.refused("%v", err)
	}
	return o, nil
}

// check refuses a result that is not what the client has asked for.
func (t task) check(o *outcome) error {
	switch want := t.draws; {
	case o.Error != "" || o.Draws == "" && (t.Options.Discard || want == 0):
	case len(o.Sums) != o.Blocks:
		return t.refused("it has %d checksums of %d blocks", len(o.Sums), o.Blocks)
	case len(o.Lengths) != t.Options.Chains:
		return t.refused("it has %d chains, and %d were asked for", len(o.Lengths), t.Options.Chains)
	default:
		for c, n := range o.Lengths {
			if n != want {
				return t.refused("chain %d has %d draws, and %d were asked for", t.from+c, n, want)
			}
		}
	}
	return nil
}

// intact compares block i of the draws with its checksum.
func (o *outcome) intact(i int, block []byte) error {
	if sum := sha256.Sum256(block); !bytes.Equal(sum[:], o.Sums[i]) {
		return fmt.Errorf("block %d is not the one that the worker has signed", i)
	}
	return nil
}

// finite refuses a draw that no run gives.
func finite(chain, draw int, x []float64) error {
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("element %d of draw %d of chain %d is %v: %w", i, draw, chain, v, infer.ErrNonFinite)
		}
	}
	return nil
}

// drawsOf is how many draws a chain of a run has.
func drawsOf(o infer.Options, m infer.Method) int {
	n := 1000
	if d, ok := m.(infer.Defaulter); ok && d.Defaults().Draws != 0 {
		n = d.Defaults().Draws
	}
	if o.Draws != 0 {
		n = o.Draws
	}
	return max(n, 0) // infer.None
}
