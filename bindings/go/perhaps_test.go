// Promise: the package is the C API with Go's manners: the same answers, errors whose kind can be tested,
// memory that is given back. Would notice: a key that is lost on the way into C, a message of another thread, a status
// that is ignored.
package perhaps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var _ io.Closer = (*Filter)(nil)

func words(prefix string, count int) [][]byte {
	var result [][]byte
	for i := 0; i < count; i++ {
		result = append(result, []byte(fmt.Sprintf("%s %d", prefix, i)))
	}
	return append(result, []byte{}, []byte{0}, bytes.Repeat([]byte("long "), 1000))
}

func count(answers []bool) (hits int) {
	for _, answer := range answers {
		if answer {
			hits++
		}
	}
	return hits
}

func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestEveryFamily(t *testing.T) {
	keys, others := words("key", 3000), words("other", 3000)[:3000]
	families := []string{"line", "block", "classic", "counting", "cuckoo", "quotient", "scalable", "ribbon", "fuse"}
	for _, family := range families {
		built, err := Build(Options{Family: family, Keys: 4000, FPR: 0.01, Threads: 2}, keys)
		must(t, built, err)
		if count(built.MayContainAll(keys)) != len(keys) {
			t.Fatal(family, "lost a key")
		}
		answers := built.MayContainAll(others)
		if count(answers) > 150 {
			t.Fatal(family, "too many false positives")
		}
		for i := 0; i < len(others); i += 100 {
			if built.MayContain(others[i]) != answers[i] {
				t.Fatal(family, "single and batch differ")
			}
		}
		data, err := built.Bytes()
		must(t, data, err)
		path := filepath.Join(t.TempDir(), family)
		if err := built.Save(path); err != nil {
			t.Fatal(err)
		}
		if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, data) {
			t.Fatal(family, "file and bytes differ")
		}
		opened, err := Open(path)
		must(t, opened, err)
		read, err := FromBytes(data)
		must(t, read, err)
		copied, err := opened.Copy()
		must(t, copied, err)
		for _, other := range []*Filter{opened, read, copied} {
			again, err := other.Bytes()
			if !bytes.Equal(must(t, again, err), data) {
				t.Fatal(family, "bytes changed")
			}
			other.Close()
			other.Close()
		}
		built.Close()
	}
}

func TestChangesAndRefusals(t *testing.T) {
	seen, err := New(Options{Keys: 1000, Family: "cuckoo"})
	must(t, seen, err)
	defer seen.Close()
	if err := seen.Insert(words("key", 500)...); err != nil {
		t.Fatal(err)
	}
	if err := seen.InsertIntegers(1, 2, 1<<64-1); err != nil {
		t.Fatal(err)
	}
	answers, err := seen.MayContainIntegers([]uint64{1, 2, 1<<64 - 1})
	if count(must(t, answers, err)) != 3 {
		t.Fatal("lost a number")
	}
	there, err := seen.Erase([]byte("key 1"))
	if !must(t, there, err) {
		t.Fatal("not erased")
	}
	for number, was := range map[uint64]bool{1: true, 1<<64 - 1: true, 3: false} {
		there, err := seen.EraseInteger(number)
		if must(t, there, err) != was {
			t.Fatal(number, there)
		}
	}
	answers, err = seen.MayContainIntegers([]uint64{1, 2})
	if must(t, answers, err); answers[0] || !answers[1] {
		t.Fatal(answers)
	}
	many := make([]uint64, 100000)
	for i := range many {
		many[i] = uint64(i) * 7
	}
	if err := seen.InsertIntegers(many...); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}

	a, err := New(Options{Keys: 1000})
	must(t, a, err)
	b, err := New(Options{Keys: 1000})
	must(t, b, err)
	a.Insert([]byte("a"))
	b.Insert([]byte("b"))
	if err := a.Merge(b); err != nil || !a.MayContain([]byte("a")) || !a.MayContain([]byte("b")) {
		t.Fatal(err)
	}
	if err := a.Intersect(b); err != nil || a.MayContain([]byte("a")) {
		t.Fatal(err)
	}
	larger, err := New(Options{Keys: 50000})
	must(t, larger, err)
	if err := a.Merge(larger); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "line") {
		t.Fatal(err)
	}
	if there, err := a.Erase([]byte("a")); !errors.Is(err, ErrUnsupported) || there {
		t.Fatal(there, err)
	}
	for _, wrong := range []Options{{Family: "none"}, {FPR: 2}, {Secret: []byte("short")}} {
		if _, err := New(wrong); !errors.Is(err, ErrBadParameter) {
			t.Fatal(wrong, err)
		}
	}
	if _, err := Open("no such file"); !errors.Is(err, ErrIO) {
		t.Fatal(err)
	}
	if _, err := FromBytes(nil); err == nil {
		t.Fatal("nothing was read")
	}
	secret := bytes.Repeat([]byte{7}, 16)
	keyed, err := New(Options{Keys: 10, Secret: secret})
	must(t, keyed, err)
	data, err := keyed.Bytes()
	must(t, data, err)
	if _, err := FromBytes(data); !errors.Is(err, ErrBadKey) {
		t.Fatal(err)
	}
	if _, err := (Reading{Secret: secret}).FromBytes(data); err != nil {
		t.Fatal(err)
	}
	if _, err := (Reading{Secret: secret}).FromBytes(data[:len(data)-1]); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	_, ofOpen := Open("seen\x00cut")
	_, ofNew := New(Options{Family: "line\x00cut"})
	for _, err := range []error{keyed.Save("seen\x00cut"), ofOpen, ofNew} {
		if !errors.Is(err, ErrBadParameter) {
			t.Fatal(err)
		}
	}
}

func TestOtherSystems(t *testing.T) {
	keys := words("key", 300)
	guava, err := Build(Options{Format: "guava", Parameters: "fpp=0.001"}, keys)
	must(t, guava, err)
	if count(guava.MayContainAll(keys)) != len(keys) {
		t.Fatal("lost a key")
	}
	data, err := guava.Bytes()
	read, err := (Reading{Format: "guava"}).FromBytes(must(t, data, err))
	if !must(t, read, err).MayContain(keys[0]) {
		t.Fatal("lost a key")
	}
	data[0] = 99 // a strategy that there is not
	if _, err := (Reading{Format: "guava"}).FromBytes(data); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	if _, err := (Reading{Format: "none"}).FromBytes(data); !errors.Is(err, ErrBadParameter) {
		t.Fatal(err)
	}
	if answers, err := guava.MayContainIntegers([]uint64{1}); !errors.Is(err, ErrUnsupported) || answers != nil {
		t.Fatal(answers, err) // an answer would be a no
	}
}

func TestDescriptionAndSizes(t *testing.T) {
	wide, err := New(Options{Keys: 1000, BitsPerKey: 20})
	must(t, wide, err)
	defer wide.Close()
	wide.Insert(words("key", 500)...)
	d, err := wide.Describe()
	must(t, d, err)
	if d.Format != "perhaps" || d.Family != "line" || d.Hash != "xxh3-64" || d.ReadOnly || d.Capacity != 1000 {
		t.Fatal(d)
	}
	if d.Bits < 20000 || d.Bits > 21000 || d.Bytes != wide.ByteSize() || d.Keys != 503 {
		t.Fatal(d)
	}
	if d.KeysEstimated < 450 || d.KeysEstimated > 550 || d.Fill <= 0 || d.FPR <= 0 || d.FPR > d.FPRAtCapacity {
		t.Fatal(d)
	}
	small, err := New(Options{Keys: 1000, MaxBytes: 512})
	if must(t, small, err).ByteSize() > 512 {
		t.Fatal(small.ByteSize())
	}
	for _, wrong := range []Options{{Keys: 9, GuardBits: 2}, {Keys: 9, Arity: 3}} {
		if _, err := New(wrong); err == nil {
			t.Fatal(wrong, "a line filter has neither guard bits nor an arity")
		}
	}
}

func TestClosedFiltersPanic(t *testing.T) {
	seen, err := New(Options{Keys: 10})
	must(t, seen, err)
	seen.Close()
	uses := map[string]func(){
		"MayContain": func() { seen.MayContain([]byte("a")) },
		"Insert":     func() { seen.Insert([]byte("a")) },
		"Bytes":      func() { seen.Bytes() },
		"Save":       func() { seen.Save(filepath.Join(t.TempDir(), "a")) },
		"Describe":   func() { seen.Describe() },
	}
	for name, use := range uses {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "closed filter") {
					t.Error(name, text)
				}
			}()
			use()
		}()
	}
}

func TestManyGoroutines(t *testing.T) {
	keys := words("key", 1000)
	seen, err := Build(Options{Keys: 2000}, keys)
	must(t, seen, err)
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			name := fmt.Sprintf("missing %d", i)
			for j := 0; j < 50; j++ {
				if count(seen.MayContainAll(keys)) != len(keys) {
					t.Error("lost a key")
				}
				if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name) {
					t.Error(err) // the message of another thread
				}
			}
		}(i)
	}
	all.Wait()
}
