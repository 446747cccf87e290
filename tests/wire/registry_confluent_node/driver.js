// Confluent's registry client for Node behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error":
// code, "detail": ...} on stdout. tests/support/clients/registry.py is the other end.
const readline = require('node:readline')
const sr = require('@confluentinc/schemaregistry')

const client = new sr.SchemaRegistryClient({ baseURLs: [process.argv[2]], maxRetries: 1 })
const serializers = { AVRO: sr.AvroSerializer, JSON: sr.JsonSerializer }
const deserializers = { AVRO: sr.AvroDeserializer, JSON: sr.JsonDeserializer }
const latest = { autoRegisterSchemas: false, useLatestVersion: true }

const operations = {
  register: ({ subject, type, ...schema }) => client.register(subject, { schemaType: type, ...schema }),
  lookup: ({ subject, type, ...schema }) => client.getId(subject, { schemaType: type, ...schema }),
  latest: async ({ subject }) => (await client.getLatestSchemaMetadata(subject)).id,
  encode: async ({ topic, type, value }) => {
    const serializer = new serializers[type](client, sr.SerdeType.VALUE, latest)
    return (await serializer.serialize(topic, value)).toString('base64')
  },
  decode: async ({ topic, type, data }) => {
    const deserializer = new deserializers[type](client, sr.SerdeType.VALUE, {})
    return { ...(await deserializer.deserialize(topic, Buffer.from(data, 'base64'))) }
  },
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
    console.log(JSON.stringify({ error: error.status ?? 0, detail: String(error.message) }))
  }
})
