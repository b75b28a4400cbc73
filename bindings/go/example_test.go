package perhaps_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"perhaps"
)

func Example() {
	seen, err := perhaps.New(perhaps.Options{Keys: 1000000, FPR: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	defer seen.Close()
	if err := seen.Insert([]byte("hello")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.MayContain([]byte("hello"))) // perhaps
	fmt.Println(seen.MayContain([]byte("world"))) // certainly absent
	// Output:
	// true
	// false
}

// Many keys in one call take less time for each.
func ExampleFilter_MayContainAll() {
	keys := [][]byte{[]byte("one"), []byte("two")}
	words, err := perhaps.Build(perhaps.Options{Family: "ribbon", FPR: 0.001}, keys)
	if err != nil {
		log.Fatal(err)
	}
	defer words.Close()
	fmt.Println(words.MayContainAll(append(keys, []byte("three"))))
	// Output: [true true false]
}

// A file that any language of the project saved is mapped, and read-only. A copy can be changed.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "perhaps")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "seen.perhaps")
	made, err := perhaps.BuildIntegers(perhaps.Options{Family: "cuckoo", Keys: 100}, []uint64{42})
	if err != nil {
		log.Fatal(err)
	}
	defer made.Close()
	if err := made.Save(path); err != nil {
		log.Fatal(err)
	}

	opened, err := perhaps.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer opened.Close()
	_, err = opened.EraseInteger(42)
	fmt.Println(errors.Is(err, perhaps.ErrUnsupported), err)
	mine, err := opened.Copy()
	if err != nil {
		log.Fatal(err)
	}
	defer mine.Close()
	fmt.Println(mine.EraseInteger(42))
	// Output:
	// true perhaps: read-only, as it was opened: copy it to change it
	// true <nil>
}

// Other systems' files are built and read, byte for byte.
func ExampleReading_FromBytes() {
	options := perhaps.Options{Format: "guava", Parameters: "fpp=0.001"}
	forJava, err := perhaps.Build(options, [][]byte{[]byte("one"), []byte("two")})
	if err != nil {
		log.Fatal(err)
	}
	defer forJava.Close()
	data, err := forJava.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	read, err := perhaps.Reading{Format: "guava"}.FromBytes(data)
	if err != nil {
		log.Fatal(err)
	}
	defer read.Close()
	fmt.Println(read.MayContain([]byte("two")))
	// Output: true
}
