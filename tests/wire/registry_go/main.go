// franz-go's registry client behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code,
// "detail": ...} on stdout. tests/support/clients/registry.py is the other end.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A loaded machine is slow, not wrong; the client's own limit is five seconds.
const deadline = 2 * time.Minute

type order struct {
	ID    string `avro:"id" json:"id"`
	Cents int64  `avro:"cents" json:"cents"`
}

type command struct {
	Op         string               `json:"op"`
	Subject    string               `json:"subject"`
	Version    int                  `json:"version"`
	Type       string               `json:"type"`
	Schema     string               `json:"schema"`
	References []sr.SchemaReference `json:"references"`
	ID         int                  `json:"id"`
	Part       string               `json:"part"`
	IDs        string               `json:"ids"`
	Record     string               `json:"record"`
	Value      json.RawMessage      `json:"value"`
	Payload    []byte               `json:"payload"`
	Headers    map[string][]byte    `json:"headers"`
}

// What lies in a topic.
type data struct {
	Payload []byte            `json:"payload"`
	Headers map[string][]byte `json:"headers"`
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

func (d *driver) deleteVersion(ctx context.Context, c command) (any, error) {
	return c.Version, d.client.DeleteSchema(ctx, c.Subject, c.Version, sr.SoftDelete)
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

// Protobuf's schemas are asked for as descriptors: no text has to be parsed here.
func serialized(ctx context.Context) context.Context {
	return sr.WithParams(ctx, sr.Format("serialized"))
}

func (d *driver) file(
	ctx context.Context, name string, schema sr.Schema, known *protoregistry.Files,
) (protoreflect.FileDescriptor, error) {
	for _, each := range schema.References {
		found, err := d.client.SchemaByVersion(serialized(ctx), each.Subject, each.Version)
		if err != nil {
			return nil, err
		}
		if _, err := d.file(ctx, each.Name, found.Schema, known); err != nil {
			return nil, err
		}
	}
	raw, err := base64.StdEncoding.DecodeString(schema.Schema)
	if err != nil {
		return nil, err
	}
	var told descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(raw, &told); err != nil {
		return nil, err
	}
	told.Name = &name
	made, err := protodesc.NewFile(&told, known)
	if err != nil {
		return nil, err
	}
	return made, known.RegisterFile(made)
}

func (d *driver) message(ctx context.Context, schema sr.Schema, path []int) (*dynamicpb.Message, error) {
	file, err := d.file(ctx, "order.proto", schema, &protoregistry.Files{})
	if err != nil {
		return nil, err
	}
	found := file.Messages().Get(path[0])
	for _, each := range path[1:] {
		found = found.Messages().Get(each)
	}
	return dynamicpb.NewMessage(found), nil
}

// The bytes of the value alone.
func (d *driver) body(ctx context.Context, schema sr.Schema, value json.RawMessage) ([]byte, error) {
	if schema.Type == sr.TypeProtobuf {
		message, err := d.message(ctx, schema, []int{0})
		if err != nil {
			return nil, err
		}
		if err := protojson.Unmarshal(value, message); err != nil {
			return nil, err
		}
		return proto.Marshal(message)
	}
	var given order
	if err := json.Unmarshal(value, &given); err != nil {
		return nil, err
	}
	if schema.Type == sr.TypeJSON {
		return json.Marshal(given)
	}
	parsed, err := d.parsed(ctx, schema, &avro.SchemaCache{})
	if err != nil {
		return nil, err
	}
	return avro.Marshal(parsed, given)
}

func (d *driver) encode(ctx context.Context, c command) (any, error) {
	var path []int
	if c.Type == "PROTOBUF" {
		ctx, path = serialized(ctx), []int{0}
	}
	schema, err := d.client.SchemaByID(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	body, err := d.body(ctx, schema, c.Value)
	if err != nil {
		return nil, err
	}
	head, err := d.header.AppendEncode(nil, c.ID, path)
	if err != nil {
		return nil, err
	}
	if c.IDs != "header" {
		return data{append(head, body...), map[string][]byte{}}, nil
	}
	latest, err := d.client.SchemaByVersion(ctx, c.Subject, -1)
	if err != nil {
		return nil, err
	}
	guid, err := hex.DecodeString(strings.ReplaceAll(latest.GUID, "-", ""))
	mark := append(append([]byte{1}, guid...), head[5:]...)
	return data{body, map[string][]byte{headerOf(c.Part): mark}}, err
}

func headerOf(part string) string {
	return "__" + part + "_schema_id"
}

// The schema that a record names, and what follows.
func (d *driver) named(ctx context.Context, c command) (sr.Schema, []byte, error) {
	mark, inHeader := c.Headers[headerOf(c.Part)]
	if !inHeader {
		id, rest, err := d.header.DecodeID(c.Payload)
		if err != nil {
			return sr.Schema{}, nil, err
		}
		schema, err := d.client.SchemaByID(ctx, id)
		return schema, rest, err
	}
	guid := hex.EncodeToString(mark[1:17])
	dashed := strings.Join([]string{guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]}, "-")
	found, err := d.client.SchemaByGUID(ctx, dashed)
	return found.Schema, append(mark[17:], c.Payload...), err
}

func (d *driver) decode(ctx context.Context, c command) (any, error) {
	if c.Type == "PROTOBUF" {
		ctx = serialized(ctx)
	}
	schema, body, err := d.named(ctx, c)
	if err != nil {
		return nil, err
	}
	var found order
	switch schema.Type {
	case sr.TypeProtobuf:
		path, rest, err := d.header.DecodeIndex(body, 8)
		if err != nil {
			return nil, err
		}
		message, err := d.message(ctx, schema, path)
		if err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(rest, message); err != nil {
			return nil, err
		}
		shown, err := protojson.Marshal(message)
		return json.RawMessage(shown), err
	case sr.TypeJSON:
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
		"delete_version": d.deleteVersion, "encode": d.encode, "decode": d.decode,
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
		code = refused.StatusCode
	}
	return map[string]any{"error": code, "detail": err.Error()}
}

func main() {
	client, err := sr.NewClient(sr.URLs(os.Args[1]), sr.HTTPClient(&http.Client{Timeout: deadline}))
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
