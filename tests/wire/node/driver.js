// kafkajs behind one JSON object per line: {"op": ...} on stdin, {"ok": ...} or {"error": code, "detail": ...} on stdout.
// tests/support/clients/foreign.py is the other end.
//
// kafkajs has no public consumer outside of groups, so reading goes through its Cluster and Broker: the same encoding
// and decoding as its consumer's, without the group.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const readline = require('node:readline')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const consoleLogger = require('kafkajs/src/loggers/console')
const { createLogger } = require('kafkajs/src/loggers')
const defaultSocketFactory = require('kafkajs/src/network/socketFactory')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
})
const zstd = new Promise((resolve) => ZstdCodec.run((module) => resolve(new module.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const DEADLINE_MS = 20000
const bootstrap = process.argv[2]
const retry = { initialRetryTime: 50, maxRetryTime: 200, retries: 5 }
const kafka = new Kafka({ clientId: 'driver', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry })
const admin = kafka.admin()
const cluster = new Cluster({
  logger: createLogger({ level: logLevel.NOTHING, logCreator: consoleLogger }),
  socketFactory: defaultSocketFactory(),
  brokers: [bootstrap],
  clientId: 'driver',
  connectionTimeout: 1000,
  metadataMaxAge: 300000,
  retry,
  allowAutoTopicCreation: false,
})

const decoded = (text) => (text === null ? null : Buffer.from(text, 'base64'))
const encoded = (bytes) => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('base64'))

function headersIn(list) {
  const headers = {}
  for (const { key, value } of list) (headers[key] ??= []).push(decoded(value))
  return headers
}

function headersOut(headers) {
  const list = []
  for (const [key, values] of Object.entries(headers ?? {}))
    for (const value of Array.isArray(values) ? values : [values]) list.push({ key, value: encoded(value) })
  return list
}

async function leaderOf(topic, partition) {
  await cluster.addTargetTopic(topic)
  await cluster.refreshMetadata()
  const leaders = cluster.findLeaderForPartitions(topic, [partition])
  return cluster.findBroker({ nodeId: Object.keys(leaders)[0] })
}

async function listOffset(topic, partition, timestamp) {
  const broker = await leaderOf(topic, partition)
  const answer = await broker.listOffsets({
    replicaId: -1,
    isolationLevel: 1,
    topics: [{ topic, partitions: [{ partition, timestamp }] }],
  })
  return Number(answer.responses[0].partitions[0].offset)
}

const VERBS = {
  async create_topic({ topic, partitions, replication_factor, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const created = await admin.createTopics({
      topics: [{ topic, numPartitions: partitions, replicationFactor: replication_factor, configEntries }],
    })
    // kafkajs reports a topic that is there already by `false` and drops the error itself.
    if (!created) throw Object.assign(new Error('createTopics returned false'), { code: 36 })
  },
  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  list_topics: () => admin.listTopics(),
  create_partitions: ({ topic, total }) => admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),
  async partition_count({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  },
  async describe_topic_configs({ topic }) {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const answer = await admin.describeConfigs({ resources, includeSynonyms: false })
    return Object.fromEntries(answer.resources[0].configEntries.map((e) => [e.configName, e.configValue]))
  },
  async alter_topic_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }]
    await admin.alterConfigs({ resources, validateOnly: false })
  },
  async produce({ topic, records, partition, codec, idempotent }) {
    const producer = kafka.producer({ idempotent, maxInFlightRequests: 1, retry: { ...retry } })
    await producer.connect()
    try {
      const messages = records.map((r) => ({
        partition,
        key: decoded(r.key),
        value: decoded(r.value),
        timestamp: r.timestamp === null ? undefined : String(r.timestamp),
        headers: headersIn(r.headers),
      }))
      const [sent] = await producer.send({ topic, messages, acks: -1, compression: CODECS[codec] })
      return messages.map((_, i) => Number(sent.baseOffset) + i)
    } finally {
      await producer.disconnect()
    }
  },
  async consume({ topic, partition, count, offset }) {
    const broker = await leaderOf(topic, partition)
    const end = Date.now() + DEADLINE_MS
    const seen = []
    for (let next = offset; seen.length < count; ) {
      if (Date.now() > end) throw new Error(`${seen.length} of ${count} records came in time`)
      const answer = await broker.fetch({
        replicaId: -1,
        isolationLevel: 1,
        maxWaitTime: 500,
        maxBytes: 50000000,
        topics: [{ topic, partitions: [{ partition, fetchOffset: String(next), maxBytes: 20000000 }] }],
      })
      for (const message of answer.responses[0].partitions[0].messages) {
        // A batch comes whole, from its first record on.
        if (Number(message.offset) < next || seen.length === count) continue
        next = Number(message.offset) + 1
        seen.push({
          offset: Number(message.offset),
          timestamp: Number(message.timestamp),
          key: encoded(message.key),
          value: encoded(message.value),
          headers: headersOut(message.headers),
        })
      }
    }
    return seen
  },
  earliest_offset: ({ topic, partition }) => listOffset(topic, partition, -2),
  latest_offset: ({ topic, partition }) => listOffset(topic, partition, -1),
  async offset_for_time({ topic, partition, timestamp }) {
    const offset = await listOffset(topic, partition, timestamp)
    return offset < 0 ? null : offset
  },
  async delete_records({ topic, partition, before }) {
    await admin.fetchTopicOffsets(topic) // deleteTopicRecords looks for the leader before it asks for metadata
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return listOffset(topic, partition, -2)
  },
}

// kafkajs wraps what the broker said in errors about retries, aggregates and partitions.
function codeOf(error) {
  const inner = [error.cause, error.originalError, ...(error.errors ?? []), ...(error.partitions ?? []).map((p) => p.error)]
  if (typeof error.code === 'number') return error.code
  for (const e of inner) if (e && codeOf(e) >= 0) return codeOf(e)
  return -1
}

async function main() {
  await Promise.all([admin.connect(), cluster.connect()])
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line)
    let answer
    try {
      answer = { ok: (await VERBS[command.op](command)) ?? null }
    } catch (error) {
      answer = { error: codeOf(error), detail: `${error.name}: ${error.message}` }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  await Promise.all([admin.disconnect(), cluster.disconnect()])
}

main().then(() => process.exit(0))
