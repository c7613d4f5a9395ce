package visible

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every character that turns text or moves the cursor is written out; letters of all scripts, joiners of emoji and
// bytes that are no UTF-8 stay.
func TestText(t *testing.T) {
	for r, want := range map[rune]string{0x061c: `\u061c`, 0x200e: `\u200e`, 0x200f: `\u200f`, 0x202a: `\u202a`,
		0x202b: `\u202b`, 0x202c: `\u202c`, 0x202d: `\u202d`, 0x202e: `\u202e`, 0x2066: `\u2066`, 0x2067: `\u2067`,
		0x2068: `\u2068`, 0x2069: `\u2069`, 0x1b: `\u001b`, '\r': `\u000d`, 0x7f: `\u007f`, 0x9b: `\u009b`} {
		require.Equal(t, "a"+want+"b", Text("a"+string(r)+"b"), "%U", r)
	}
	for _, same := range []string{"", "theta[0]", "β\tγ\n", "שלום", "مرحبا", "क्\u200dष", "a\xff\u2028b"} {
		require.Equal(t, same, Text(same))
	}
	require.Equal(t, "\xff\\u202e\xfe", Text("\xff\u202e\xfe"))
}

// JSON that is written has the same names when it is read.
func TestWriterKeepsJSON(t *testing.T) {
	var b strings.Builder
	require.NoError(t, json.NewEncoder(Writer(&b)).Encode("a\u202eb\u2066\r"))
	require.NotContains(t, b.String(), "\u202e")
	var back string
	require.NoError(t, json.Unmarshal([]byte(b.String()), &back))
	require.Equal(t, "a\u202eb\u2066\r", back)
}
