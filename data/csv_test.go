package data_test

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A byte order mark, CRLF, quoted commas, quotes and newlines, spaces, empty lines and missing values are what they are
// in RFC 4180 and in the description of CSV; lines are counted as an editor counts them.
func TestReadCSV(t *testing.T) {
	text := "\ufeffage, region ,\"note \"\"n\"\"\",code\r\n" +
		"41,north,\"a,b\",10\r\n" +
		"\r\n" +
		" 1.5e1 ,south,\"two\r\nlines\",9\r\n" +
		",NA,\"\",9\r\n"
	table := read(t, data.CSV{Factors: []string{"code"}}, text)
	require.Equal(t, []string{"age", "region", `note "n"`, "code"}, table.Names())
	require.Equal(t, 3, table.Len())

	age, err := table.Column("age")
	require.NoError(t, err)
	assert.Equal(t, []float64{41, 15}, age.Numbers[:2])
	assert.True(t, math.IsNaN(age.Numbers[2]))
	assert.Nil(t, age.Labels)

	region, err := table.Column("region")
	require.NoError(t, err)
	assert.Equal(t, []string{"north", "south", ""}, region.Labels)
	assert.Equal(t, []string{"north", "south"}, region.Levels)

	note, err := table.Column(`note "n"`)
	require.NoError(t, err)
	assert.Equal(t, []string{"a,b", "two\nlines", ""}, note.Labels)

	code, err := table.Column("code") // as text 10 would come before 9
	require.NoError(t, err)
	assert.Equal(t, []string{"9", "10"}, code.Levels)

	missing, err := table.Missing()
	require.NoError(t, err)
	assert.Equal(t, []data.Cell{{2, 6, "age"}, {2, 6, "region"}, {2, 6, `note "n"`}}, missing)
	complete, dropped, err := table.DropMissing("age")
	require.NoError(t, err)
	assert.Equal(t, 1, dropped)
	assert.Equal(t, 2, complete.Len())
	missing, err = complete.Missing()
	require.NoError(t, err)
	assert.Empty(t, missing)

	assert.Equal(t, `3 rows
age       numbers from 15 to 41, 1 missing
region    factor of 2 levels: "north", "south", 1 missing
note "n"  factor of 2 levels: "a,b", "two\nlines", 1 missing
code      factor of 2 levels: "9", "10"
`, table.String())
}

// What turns text around is written out where a table tells of its columns.
func TestTableShowsHiddenCharacters(t *testing.T) {
	table, err := data.NewTable(data.Column{Name: "a\u202eb", Labels: []string{"\u2066c", "d"}})
	require.NoError(t, err)
	require.Contains(t, table.String(), `a\u202eb  factor`)
	require.NotContains(t, table.String(), "\u202e")
	require.NotContains(t, table.String(), "\u2066")
}

// Words of missing values are those of the file, and of one column alone.
func TestReadCSVMissing(t *testing.T) {
	c := data.CSV{Missing: []string{"?"}, MissingIn: map[string][]string{"insulin": {"0"}}, Comma: ';'}
	table := read(t, c, "births;insulin\n0;0\n?;94\n")
	missing, err := table.Missing()
	require.NoError(t, err)
	assert.Equal(t, []data.Cell{{0, 2, "insulin"}, {1, 3, "births"}}, missing)
	_, dropped, err := table.DropMissing()
	assert.Equal(t, 2, dropped)
	require.ErrorContains(t, err, "every row has a missing value")
}

// A column that is not read may hold anything, and a column without any value is one of numbers.
func TestReadCSVColumns(t *testing.T) {
	table := read(t, data.CSV{Columns: []string{"c", "a"}}, "a,b,c\n1,x,\n2,3,NA\n")
	assert.Equal(t, []string{"a", "c"}, table.Names())
	c, err := table.Column("c")
	require.NoError(t, err)
	assert.Len(t, c.Numbers, 2)
}

// Each mistake is an error that names the file, the line, the column, the value and what would be right.
func TestReadCSVErrors(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		csv              data.CSV
	}{
		{"empty file", "", `data: f.csv: the file is empty: its first line must name the columns`, data.CSV{}},
		{"no rows", "a,b\n", `data: f.csv: the file has the names of columns and no rows`, data.CSV{}},
		{"short row", "a,b,c\n1,2,3\n1,2\n",
			`data: f.csv, line 3, column "c": it is missing: the line has 2 fields, expected 3, as the first line has`,
			data.CSV{}},
		{"long row", "a,b\n1,2,3\n", `data: f.csv, line 2: it has 3 fields, expected 2, as the first line has`, data.CSV{}},
		{"no name", "a,,c\n1,2,3\n",
			`data: f.csv, line 1: field 2 of the first line is empty: it must name a column`, data.CSV{}},
		{"name twice", "a,b, a\n1,2,3\n", `data: f.csv, line 1, column "a": fields 1 and 3 have the same name`, data.CSV{}},
		{"stated number", "age\n12\n12x\n",
			`data: f.csv, line 3, column "age", value "12x": expected a number, such as -1.5 or 2e3`,
			data.CSV{Numbers: []string{"age"}}},
		{"slip in a number", "id,age\nq,12\nr,1O\n",
			`data: f.csv, line 3, column "age", value "1O": expected a number, as in line 2: state the kind of the column ` +
				`in CSV.Numbers or CSV.Factors, or the word of a missing value in CSV.Missing`, data.CSV{}},
		{"number in a factor", "id,age\nq,?\nr,10\n",
			`data: f.csv, line 3, column "age", value "10": it is a number, and "?" in line 2 is not: state the kind of the ` +
				`column in CSV.Numbers or CSV.Factors, or the word of a missing value in CSV.Missing`, data.CSV{}},
		{"decimal comma", "a;b\n\"1,5\";2\n",
			`data: f.csv, line 2, column "a", value "1,5": expected a number, such as -1.5 or 2e3; it looks like a number ` +
				`with a decimal comma: set CSV.Decimal to ','`, data.CSV{Comma: ';', Numbers: []string{"a"}}},
		{"decimal comma, not stated", "a;b\n1,5;2\n", `data: f.csv, line 2, column "a", value "1,5": it looks like a ` +
			`number with a decimal comma: set CSV.Decimal to ','; or state the column in CSV.Factors`, data.CSV{Comma: ';'}},
		{"thousands", "a\n999\n\"1,000\"\n", `data: f.csv, line 3, column "a", value "1,000": expected a number, such as ` +
			`-1.5 or 2e3; it looks like a number with "," between thousands: set CSV.Thousands, or, where the comma is the ` +
			`decimal mark, CSV.Decimal`, data.CSV{}},
		{"thousands and a comma", "a;b\n1.234,5;2\n", `data: f.csv, line 2, column "a", value "1.234,5": it looks like a ` +
			`number with "." between thousands: set CSV.Thousands, and CSV.Decimal to ","; or state the column in CSV.Factors`,
			data.CSV{Comma: ';'}},
		{"a point beside decimal commas", "a\n1.5\n", `data: f.csv, line 2, column "a", value "1.5": ` +
			`expected a number, such as -1.5 or 2e3`, data.CSV{Comma: ';', Decimal: ',', Numbers: []string{"a"}}},
		{"wrong groups", "a\n1_000_00\n", `data: f.csv, line 2, column "a", value "1_000_00": ` +
			`expected a number, such as -1.5 or 2e3`, data.CSV{Thousands: '_', Numbers: []string{"a"}}},
		{"one mark for two", "a\n1\n", `data: f.csv: CSV.Decimal is "," and CSV.Thousands ",": expected two marks that are ` +
			`not in numbers otherwise`, data.CSV{Decimal: ',', Thousands: ','}},
		{"date", "day\n2024-01-31\n", `data: f.csv, line 2, column "day", value "2024-01-31": it looks like a date: state ` +
			`its layout in CSV.Dates ("2006-01-02"), to have days since 1970-01-01; or state the column in CSV.Factors`,
			data.CSV{}},
		{"no date", "day\n2024-02-30\n", `data: f.csv, line 2, column "day", value "2024-02-30": it is no date of the ` +
			`layout "2006-01-02", which CSV.Dates states`, data.CSV{Dates: map[string]string{"day": "2006-01-02"}}},
		{"beyond 2^53", "id\n9007199254740992\n9007199254740993\n", `data: f.csv, line 3, column "id", ` +
			`value "9007199254740993": it is beyond 2^53 and would be rounded to 9007199254740992: state the column in ` +
			`CSV.Factors where it has codes, or in CSV.Numbers to have it rounded`, data.CSV{}},
		{"two Unicode forms", "g\ncaf\u00e9\ncafe\u0301\n", "data: f.csv, line 3, column \"g\", value \"cafe\u0301\": " +
			`it is the level "caf\u00e9" in another Unicode form, "cafe\u0301": set CSV.NFC, which makes them one, or write ` +
			`both alike`, data.CSV{}},
		{"overflow", "a\n1e308\n1e309\n",
			`data: f.csv, line 3, column "a", value "1e309": it is beyond the largest number, 1.8e308`, data.CSV{}},
		{"infinite", "a\n1\n-Inf\n", `data: f.csv, line 3, column "a", value "-Inf": a number must be finite`, data.CSV{}},
		{"hexadecimal", "a\n0x10\n", `data: f.csv, line 2, column "a", value "0x10": expected a number, such as -1.5 or 2e3`,
			data.CSV{Numbers: []string{"a"}}},
		{"another NaN", "a\n1\nNAN\n", `data: f.csv, line 3, column "a", value "NAN": it is no number: ` +
			`where it means a missing value, name it in CSV.Missing`, data.CSV{}},
		{"no such level", "a\nlow\nmid\n", `data: f.csv, line 3, column "a", value "mid": ` +
			`it is not among the stated levels: "low", "high"`, data.CSV{Levels: map[string][]string{"a": {"low", "high"}}}},
		{"level twice", "a\nlow\n", `data: column "a", value "low": a level must not be empty, nor be there twice`,
			data.CSV{Levels: map[string][]string{"a": {"low", "low"}}}},
		{"unknown column", "a\nlow\n", `data: f.csv, column "b": CSV.Factors names it, and the file has "a"`,
			data.CSV{Factors: []string{"b"}}},
		{"column not read", "a,b\n1,2\n", `data: f.csv, column "b": CSV.Factors names it, and CSV.Columns does not`,
			data.CSV{Factors: []string{"b"}, Columns: []string{"a"}}},
		{"two kinds", "a\n1\n", `data: f.csv, column "a": it is stated both as numbers and as a factor`,
			data.CSV{Factors: []string{"a"}, Numbers: []string{"a"}}},
		{"bare quote", "a,b\n1,x\"y\n", `data: f.csv, line 2, column "b": ` +
			`a quote stands inside a value without quotes around it: write "a ""b"" c"`, data.CSV{}},
		{"open quote", "a,b\n1,\"x\n2,y\n", `data: f.csv, line 2, column "b": ` +
			`the quote that begins here has no end up to line 3, or more than a ',' follows its end`, data.CSV{}},
		{"UTF-16", "\xff\xfea\x00,\x00", `data: f.csv, line 1: the file is UTF-16: expected UTF-8`, data.CSV{}},
		{"Latin-1", "a\nK\xf6ln\n", "data: f.csv, line 2, column \"a\", value \"K\\xf6ln\": it is not UTF-8", data.CSV{}},
		{"lone CR", "a,b\r1,2\r", `data: f.csv, line 1, value "b\r1": lines end in a lone CR: expected LF or CRLF`,
			data.CSV{}},
		{"comma is a quote", "a\n1\n", "data: f.csv: csv: invalid field or comment delimiter", data.CSV{Comma: '"'}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.csv.Name = "f.csv"
			_, err := c.csv.Read(strings.NewReader(c.text))
			require.EqualError(t, err, c.want)
		})
	}
}

// Numbers, dates and text are read as the options say. Days are those of as.numeric(as.Date(x)) in R.
func TestReadCSVNotations(t *testing.T) {
	nan := math.NaN()
	day, hour := map[string]string{"x": "2006-01-02"}, map[string]string{"x": "2.1.2006 15:04"}
	for _, c := range []struct {
		text string
		csv  data.CSV
		want []float64
	}{
		{"1,5\n-2\n,25e1\n", data.CSV{Comma: ';', Decimal: ','}, []float64{1.5, -2, 2.5}},
		{"1.234.567,5\n999\n12.000\n", data.CSV{Comma: ';', Decimal: ',', Thousands: '.'},
			[]float64{1234567.5, 999, 12000}},
		{"\"1,000\"\nNA\n\"-1,000.25\"\n", data.CSV{Thousands: ','}, []float64{1000, nan, -1000.25}},
		{"1_000\n0.5\n10\n", data.CSV{Thousands: '_'}, []float64{1000, 0.5, 10}},
		{"1970-01-02\n2000-02-29\nNA\n1969-12-31\n", data.CSV{Dates: day}, []float64{1, 11016, nan, -1}},
		{"1.3.2024 12:00\n", data.CSV{Dates: hour}, []float64{19783.5}},
		{"1152921504606846976\n-9007199254740994\n00123\n", data.CSV{}, []float64{1 << 60, -1<<53 - 2, 123}},
		{"9007199254740993\n", data.CSV{Numbers: []string{"x"}}, []float64{1 << 53}},
	} {
		x, err := read(t, c.csv, "x\n"+c.text).Column("x")
		require.NoError(t, err, c.text)
		require.InDeltaSlice(t, c.want, x.Numbers, 0, c.text)
	}
	g, err := read(t, data.CSV{NFC: true, Levels: map[string][]string{"caf\u00e9": {"e\u0301", "a"}}},
		"cafe\u0301\n\u00e9\ne\u0301\n").Column("caf\u00e9")
	require.NoError(t, err)
	require.Equal(t, []string{"\u00e9", "\u00e9"}, g.Labels)
	labels, err := read(t, data.CSV{Factors: []string{"day"}}, "day\n2024-01-31\n").Column("day")
	require.NoError(t, err)
	require.Equal(t, []string{"2024-01-31"}, labels.Levels)
}

// The fields of an error are for programs.
func TestErrorFields(t *testing.T) {
	_, err := data.CSV{}.Read(strings.NewReader("id,age\nq,12\nr,1O\n"))
	e := wrong(t, err)
	assert.Equal(t, []any{3, 1, "age", "1O"}, []any{e.Line, e.Row, e.Column, e.Value})
}

// A file is read by its path, which errors name; what the reader says goes through.
func TestOpenCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "people.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\nx\n1\n"), 0o600))
	_, err := data.CSV{}.Open(path)
	require.ErrorContains(t, err, path+`, line 3, column "a", value "1"`)
	_, err = data.CSV{}.Open(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = data.CSV{}.Read(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	late := io.MultiReader(strings.NewReader("a\n1\n"), iotest.ErrReader(io.ErrClosedPipe))
	_, err = data.CSV{}.Read(late)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = data.CSV{}.Read(nil)
	require.True(t, errors.As(err, new(*data.Error)))
}
