// Confluent's registry client for Node behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error":
// code, "detail": ...} on stdout. tests/support/clients/registry.py is the other end.
const readline = require('node:readline')
const sr = require('@confluentinc/schemaregistry')
const { createFileRegistry, createMutableRegistry, fromBinary, fromJson } = require('@bufbuild/protobuf')
const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt')

const client = new sr.SchemaRegistryClient({ baseURLs: [process.argv[2]], maxRetries: 1 })
const serializers = { AVRO: sr.AvroSerializer, JSON: sr.JsonSerializer, PROTOBUF: sr.ProtobufSerializer }
const deserializers = { AVRO: sr.AvroDeserializer, JSON: sr.JsonDeserializer, PROTOBUF: sr.ProtobufDeserializer }
const parts = { key: sr.SerdeType.KEY, value: sr.SerdeType.VALUE }

// Of Avro and JSON the schema is looked up, and the client's own strategies would have to know the record before that.
const naming = ({ type, naming, subject }) =>
  type === 'PROTOBUF' || naming === 'topic'
    ? { subjectNameStrategyType: naming.toUpperCase() }
    : { subjectNameStrategy: () => subject }
const marks = ({ ids }) => (ids === 'header' ? { schemaIdSerializer: sr.HeaderSchemaIdSerializer } : {})

const messageOf = ({ files, record }) => {
  const found = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(files, 'base64')))
  return found.getMessage(record)
}

// A registry's descriptors, unlike a compiler's, name no field for JSON.
const shown = (kind, found) => {
  const told = (field, value) => (field.enum ? field.enum.value[value].name : String(value))
  return Object.fromEntries(kind.fields.map((field) => [field.name, told(field, found[field.localName])]))
}

const operations = {
  register: ({ subject, type, ...schema }) => client.register(subject, { schemaType: type, ...schema }),
  lookup: ({ subject, type, ...schema }) => client.getId(subject, { schemaType: type, ...schema }),
  latest: async ({ subject }) => (await client.getLatestSchemaMetadata(subject)).id,
  encode: async ({ topic, type, part, value, ...given }) => {
    const headers = {}
    const conf = { ...naming({ type, ...given }), ...marks(given) }
    let message = value
    if (type === 'PROTOBUF') {
      const kind = messageOf(given)
      message = fromJson(kind, value)
      conf.autoRegisterSchemas = true
      conf.registry = createMutableRegistry(kind)
    } else {
      conf.autoRegisterSchemas = false
      conf.useLatestVersion = true
    }
    const serializer = new serializers[type](client, parts[part], conf)
    const payload = await serializer.serialize(topic, message, headers)
    const told = Object.entries(headers).map(([name, mark]) => [name, mark.toString('base64')])
    return { payload: payload.toString('base64'), headers: Object.fromEntries(told) }
  },
  decode: async ({ topic, type, part, payload, headers, record, ...given }) => {
    const deserializer = new deserializers[type](client, parts[part], naming({ type, ...given }))
    const told = Object.entries(headers).map(([name, mark]) => [name, Buffer.from(mark, 'base64')])
    const bytes = Buffer.from(payload, 'base64')
    const found = await deserializer.deserialize(topic, bytes, Object.fromEntries(told))
    return type === 'PROTOBUF' ? shown(deserializer.fileRegistry.getMessage(record), found) : { ...found }
  },
  delete_version: ({ subject, version }) => client.deleteSubjectVersion(subject, version),
  delete: async ({ subject }) => {
    await client.deleteSubject(subject)
    return client.deleteSubject(subject, true)
  },
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const { op, ...given } = JSON.parse(line)
  try {
    console.log(JSON.stringify({ ok: await operations[op](given) }))
  } catch (error) {
    console.log(JSON.stringify({ error: error.status ?? 0, detail: String(error.stack) }))
  }
})
