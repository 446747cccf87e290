// franz-go's registry client behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code,
// "detail": ...} on stdout. tests/support/clients/registry.py is the other end.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
)

const deadline = 20 * time.Second

type order struct {
	ID    string `avro:"id" json:"id"`
	Cents int64  `avro:"cents" json:"cents"`
}

type command struct {
	Op         string               `json:"op"`
	Subject    string               `json:"subject"`
	Type       string               `json:"type"`
	Schema     string               `json:"schema"`
	References []sr.SchemaReference `json:"references"`
	ID         int                  `json:"id"`
	Value      order                `json:"value"`
	Data       []byte               `json:"data"`
}

type driver struct {
	client    *sr.Client
	header    sr.ConfluentHeader
	inContext bool
}

func (c command) sent() (sr.Schema, error) {
	schema := sr.Schema{Schema: c.Schema, References: c.References}
	err := schema.Type.UnmarshalText([]byte(c.Type))
	return schema, err
}

func (d *driver) register(ctx context.Context, c command) (any, error) {
	schema, err := c.sent()
	if err != nil {
		return nil, err
	}
	if d.inContext || strings.HasPrefix(c.Subject, ":.") {
		// CreateSchema asks for the uses of the id, without saying in which context.
		return d.client.RegisterSchema(ctx, c.Subject, schema, -1, -1)
	}
	made, err := d.client.CreateSchema(ctx, c.Subject, schema)
	return made.ID, err
}

func (d *driver) lookup(ctx context.Context, c command) (any, error) {
	schema, err := c.sent()
	if err != nil {
		return nil, err
	}
	found, err := d.client.LookupSchema(ctx, c.Subject, schema)
	return found.ID, err
}

func (d *driver) latest(ctx context.Context, c command) (any, error) {
	found, err := d.client.SchemaByVersion(ctx, c.Subject, -1)
	return found.ID, err
}

func (d *driver) delete(ctx context.Context, c command) (any, error) {
	if _, err := d.client.DeleteSubject(ctx, c.Subject, sr.SoftDelete); err != nil {
		return nil, err
	}
	return d.client.DeleteSubject(ctx, c.Subject, sr.HardDelete)
}

// What a schema refers to is parsed before it.
func (d *driver) parsed(ctx context.Context, schema sr.Schema, known *avro.SchemaCache) (avro.Schema, error) {
	for _, each := range schema.References {
		found, err := d.client.SchemaByVersion(ctx, each.Subject, each.Version)
		if err != nil {
			return nil, err
		}
		if _, err := d.parsed(ctx, found.Schema, known); err != nil {
			return nil, err
		}
	}
	return avro.ParseWithCache(schema.Schema, "", known)
}

func (d *driver) encode(ctx context.Context, c command) (any, error) {
	schema, err := d.client.SchemaByID(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	head, err := d.header.AppendEncode(nil, c.ID, nil)
	if err != nil {
		return nil, err
	}
	if schema.Type == sr.TypeJSON {
		body, err := json.Marshal(c.Value)
		return append(head, body...), err
	}
	parsed, err := d.parsed(ctx, schema, &avro.SchemaCache{})
	if err != nil {
		return nil, err
	}
	body, err := avro.Marshal(parsed, c.Value)
	return append(head, body...), err
}

func (d *driver) decode(ctx context.Context, c command) (any, error) {
	id, body, err := d.header.DecodeID(c.Data)
	if err != nil {
		return nil, err
	}
	schema, err := d.client.SchemaByID(ctx, id)
	if err != nil {
		return nil, err
	}
	var found order
	if schema.Type == sr.TypeJSON {
		return &found, json.Unmarshal(body, &found)
	}
	parsed, err := d.parsed(ctx, schema, &avro.SchemaCache{})
	if err != nil {
		return nil, err
	}
	return &found, avro.Unmarshal(parsed, body, &found)
}

func (d *driver) answer(line []byte) any {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	operations := map[string]func(context.Context, command) (any, error){
		"register": d.register, "lookup": d.lookup, "latest": d.latest, "delete": d.delete,
		"encode": d.encode, "decode": d.decode,
	}
	var c command
	err := json.Unmarshal(line, &c)
	var ok any
	if err == nil {
		ok, err = operations[c.Op](ctx, c)
	}
	if err == nil {
		return map[string]any{"ok": ok}
	}
	code := 0
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		code = refused.ErrorCode
	}
	return map[string]any{"error": code, "detail": err.Error()}
}

func main() {
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d := &driver{client: client, inContext: strings.Contains(os.Args[1], "/contexts/")}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := out.Encode(d.answer(lines.Bytes())); err != nil {
			os.Exit(1)
		}
	}
}
