// The lab in Go: peer write NAME FOLDER, peer read FOLDER FILE...
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"perhaps"
)

func take[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func lines(path string) [][]byte {
	all := bytes.Split(take(os.ReadFile(path)), []byte("\n"))
	return all[:len(all)-1]
}

func main() {
	if os.Args[1] == "write" {
		name, folder := os.Args[2], os.Args[3]
		keys := lines(folder + "/keys")
		kinds := map[string]perhaps.Options{
			"lab":    {Format: "lab"},
			"line":   {Family: "line", Keys: uint64(len(keys))},
			"ribbon": {Family: "ribbon", Keys: uint64(len(keys))},
		}
		for kind, options := range kinds {
			filter := take(perhaps.Build(options, keys))
			take(0, filter.Save(folder+"/"+name+"."+kind))
		}
		return
	}
	probes := lines(os.Args[2] + "/probes")
	for _, file := range os.Args[3:] {
		reading := perhaps.Reading{}
		if strings.HasSuffix(file, ".lab") {
			reading.Format = "lab"
		}
		for _, answer := range take(reading.Open(file)).MayContainAll(probes) {
			if answer {
				fmt.Print("1")
			} else {
				fmt.Print("0")
			}
		}
		fmt.Println()
	}
}
