// Checks every record of the contract with santhosh-tekuri/jsonschema.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	contract := os.Getenv("CONTRACT")
	schemas := map[string]*jsonschema.Schema{}
	files, err := filepath.Glob(filepath.Join(contract, "events", "*.json"))
	must(err)
	compiler := jsonschema.NewCompiler()
	for _, file := range files {
		schema, err := compiler.Compile(file)
		must(err)
		schemas[strings.TrimSuffix(filepath.Base(file), ".json")] = schema
	}

	records, err := os.Open(filepath.Join(contract, "records.ndjson"))
	must(err)
	lines := bufio.NewScanner(records)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		var record struct {
			Type  *string
			Value json.RawMessage
		}
		must(json.Unmarshal(lines.Bytes(), &record))
		if record.Type == nil {
			continue
		}
		var value string
		must(json.Unmarshal(record.Value, &value))
		data, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
		must(err)
		if schemas[*record.Type].Validate(data) == nil {
			fmt.Println(number, "accepts")
		} else {
			fmt.Println(number, "refuses")
		}
	}
	must(lines.Err())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
