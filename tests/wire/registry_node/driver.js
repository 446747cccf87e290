// The registry client of kafkajs behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code,
// "detail": ...} on stdout. tests/support/clients/registry.py is the other end.
const readline = require('node:readline')
const { SchemaRegistry } = require('@kafkajs/confluent-schema-registry')

const registry = new SchemaRegistry({ host: process.argv[2], retry: { retries: 1 } })

const operations = {
  register: async ({ subject, ...schema }) => (await registry.register(schema, { subject })).id,
  lookup: ({ subject, type, schema }) => registry.getRegistryIdBySchema(subject, { type, schema }),
  latest: ({ subject }) => registry.getLatestSchemaId(subject),
  encode: async ({ id, value }) => ({ payload: (await registry.encode(id, value)).toString('base64'), headers: {} }),
  decode: async ({ type, payload }) => {
    const found = await registry.decode(Buffer.from(payload, 'base64'))
    return type === 'PROTOBUF' ? found.toJSON() : { ...found }
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
